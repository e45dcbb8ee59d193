import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** A producer with the settings of production: nothing is lost, and nothing is written twice. */
public class Produce {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments.length > 0 ? arguments[0] : "127.0.0.1:9092");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("acks", "all");
        settings.put("enable.idempotence", "true");
        settings.put("max.in.flight.requests.per.connection", 5);
        settings.put("delivery.timeout.ms", 120_000);
        settings.put("compression.type", "lz4");
        settings.put("linger.ms", 20);
        settings.put("batch.size", 65_536);
        settings.put("buffer.memory", 64L * 1024 * 1024);
        int count = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 10;
        try (Producer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int number = 0; number < count; number++) {
                String order = "order-" + number;
                producer.send(new ProducerRecord<>("orders", order, number + " apples"), (stored, error) -> {
                    if (error != null) {
                        System.err.println(order + " was not stored: " + error);
                    } else {
                        System.out.printf("%s is at offset %d of partition %d%n", order, stored.offset(), stored.partition());
                    }
                });
            }
        }
    }
}
