// Run as a single file: commits and aborts transactions, carries offsets in them, reads them back with read_committed.
// Prints one line of what it has read; ends with an error when something does not happen as it should.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transact {
    static Properties settings(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        return properties;
    }

    static KafkaProducer<String, String> producer(String bootstrap, String name) {
        Properties properties = settings(bootstrap);
        properties.put("transactional.id", name);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    public static void main(String[] arguments) {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        String name = arguments[2];
        TopicPartition place = new TopicPartition(topic, 0);
        KafkaProducer<String, String> producer = producer(bootstrap, name);
        for (int number = 0; number < 9; number++) {
            producer.beginTransaction();
            for (int part = 0; part < 2; part++) {
                producer.send(new ProducerRecord<>(topic, part, null, number + "-" + part));
            }
            if (number % 3 == 2) {
                producer.flush();
                producer.abortTransaction();
            } else {
                Map<TopicPartition, OffsetAndMetadata> offsets = Map.of(place, new OffsetAndMetadata(number + 1));
                producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata("java-" + name));
                producer.commitTransaction();
            }
        }
        KafkaProducer<String, String> newer = producer(bootstrap, name);
        try {
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "zombie"));
            producer.commitTransaction();
            throw new IllegalStateException("the older producer was not fenced");
        } catch (ProducerFencedException | InvalidProducerEpochException expected) {
            // As it should be.
        } catch (KafkaException wrapped) {
            if (!(wrapped.getCause() instanceof ProducerFencedException
                || wrapped.getCause() instanceof InvalidProducerEpochException)) {
                throw wrapped;
            }
        }
        newer.beginTransaction();
        newer.send(new ProducerRecord<>(topic, 0, null, "last"));
        newer.commitTransaction();
        newer.close();
        Properties properties = settings(bootstrap);
        properties.put("group.id", "java-" + name);
        properties.put("isolation.level", "read_committed");
        try (KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            OffsetAndMetadata committed = consumer.committed(Set.of(place)).get(place);
            consumer.assign(List.of(place, new TopicPartition(topic, 1)));
            consumer.seekToBeginning(consumer.assignment());
            List<String> values = new ArrayList<>();
            while (values.size() < 13) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(10))) {
                    values.add(record.value());
                }
            }
            values.sort(null);
            System.out.println(committed.offset() + " " + String.join(",", values));
        }
        System.exit(0);
    }
}
