import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** A consumer of a group that commits by itself, when an order has been processed; it ends after ten quiet seconds. */
public class Consume {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments.length > 0 ? arguments[0] : "127.0.0.1:9092");
        settings.put("group.id", "order-processor");
        settings.put("group.protocol", "consumer");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", 500);
        settings.put("max.poll.interval.ms", 300_000);
        settings.put("fetch.min.bytes", 1_048_576);
        settings.put("fetch.max.wait.ms", 500);
        settings.put("client.rack", "us-east-1a");
        Duration quiet = Duration.ofSeconds(arguments.length > 1 ? Long.parseLong(arguments[1]) : 10);
        try (Consumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(quiet);
                if (records.isEmpty()) {
                    return;
                }
                for (ConsumerRecord<String, String> record : records) {
                    // An exception ends the loop before the commit: the order is delivered again.
                    processOrder(record.value());
                }
                consumer.commitSync();
            }
        }
    }

    private static void processOrder(String order) {
        System.out.println(order);
    }
}
