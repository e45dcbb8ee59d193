import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.ShareConsumer;

/** A worker of a queue: each job is accepted, released for another try, or rejected. */
public class Work {
    private static class TransientException extends Exception {}

    private static class PoisonException extends Exception {}

    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments.length > 0 ? arguments[0] : "127.0.0.1:9092");
        settings.put("group.id", "image-processors");
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        Duration quiet = Duration.ofSeconds(arguments.length > 1 ? Long.parseLong(arguments[1]) : 10);
        try (ShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of("image-jobs"));
            while (true) {
                ConsumerRecords<String, String> jobs = consumer.poll(quiet);
                if (jobs.isEmpty()) {
                    return;
                }
                for (ConsumerRecord<String, String> job : jobs) {
                    try {
                        processImage(job.value(), job.deliveryCount().orElse((short) 1));
                        consumer.acknowledge(job, AcknowledgeType.ACCEPT);
                    } catch (TransientException error) {
                        consumer.acknowledge(job, AcknowledgeType.RELEASE);
                    } catch (PoisonException error) {
                        consumer.acknowledge(job, AcknowledgeType.REJECT);
                    }
                }
                consumer.commitSync();
            }
        }
    }

    private static void processImage(String job, short tries) throws TransientException, PoisonException {
        if (job.startsWith("broken")) {
            throw new PoisonException();
        }
        if (job.startsWith("busy") && tries < 2) {
            throw new TransientException();
        }
        System.out.println(job);
    }
}
