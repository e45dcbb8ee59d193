// Run as a single file: the topologies of bench/spark_real_time.py with Kafka Streams, at least once. Every result is
// written, none merged with the next. Says when it is running, and goes on until it is killed.

import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

public class LatencyStreams {
    public static void main(String[] arguments) throws InterruptedException {
        String topology = arguments[2];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("application.id", "latency-" + topology);
        properties.put("state.dir", arguments[1]);
        properties.put("num.stream.threads", arguments[5]);
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> records = builder.stream(arguments[3], Consumed.with(Serdes.String(), Serdes.String()));
        if (topology.equals("keyed")) {
            records = records.groupByKey()
                .reduce((one, other) -> one.compareTo(other) >= 0 ? one : other,
                    Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("greatest")
                        .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
                .toStream();
        } else {
            records = records.filter((key, value) -> value.length() > 0);
        }
        records.to(arguments[4], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        Thread.currentThread().join();
    }
}
