import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Consume, process, produce: every order becomes one enriched order, exactly once, even when this is killed. */
public class Enrich {
    public static void main(String[] arguments) {
        String bootstrap = arguments.length > 0 ? arguments[0] : "127.0.0.1:9092";
        Duration quiet = Duration.ofSeconds(arguments.length > 1 ? Long.parseLong(arguments[1]) : 10);
        Properties writing = new Properties();
        writing.put("bootstrap.servers", bootstrap);
        // The id is the same after a restart, and no other instance has it.
        writing.put("transactional.id", "order-enricher-instance-1");
        writing.put("transaction.timeout.ms", 60_000);
        writing.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        writing.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        Properties reading = new Properties();
        reading.put("bootstrap.servers", bootstrap);
        reading.put("group.id", "order-enricher");
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("auto.offset.reset", "earliest");
        reading.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        reading.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        try (Producer<String, String> producer = new KafkaProducer<>(writing);
                Consumer<String, String> consumer = new KafkaConsumer<>(reading)) {
            producer.initTransactions();
            consumer.subscribe(List.of("orders"));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(quiet);
                if (records.isEmpty()) {
                    return;
                }
                try {
                    producer.beginTransaction();
                    Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                    for (ConsumerRecord<String, String> record : records) {
                        producer.send(new ProducerRecord<>("enriched-orders", record.key(), record.value() + ", enriched"));
                        offsets.put(new TopicPartition(record.topic(), record.partition()),
                                new OffsetAndMetadata(record.offset() + 1));
                    }
                    // The offsets are part of the transaction, so they are committed with the records or not at all.
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    producer.commitTransaction();
                } catch (ProducerFencedException | OutOfOrderSequenceException error) {
                    throw error; // Another instance has taken over.
                } catch (KafkaException error) {
                    System.err.println("the transaction was aborted, its orders are read again: " + error);
                    producer.abortTransaction();
                    for (TopicPartition partition : records.partitions()) {
                        consumer.seek(partition, records.records(partition).get(0).offset());
                    }
                }
            }
        }
    }
}
