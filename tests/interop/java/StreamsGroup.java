// Run as a single file: one instance of a Kafka Streams application with group.protocol=streams, exactly once. It counts
// words, and joins two streams within a window. Every result is written, none merged with the next. Says what it does:
// its states, and from which offset to which it restores each partition of a store. Goes on until it is killed.

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueStore;

public class StreamsGroup {
    static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            System.out.println("restoring " + store + " " + partition.partition() + " " + from + " " + to);
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long count) {
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String bootstrap = arguments[0];
        String application = arguments[1];
        String directory = arguments[2];
        String endpoint = arguments[3];
        String threads = arguments[4];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("application.id", application);
        properties.put("state.dir", directory);
        properties.put("processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2);
        properties.put("group.protocol", "streams");
        properties.put("application.server", endpoint);
        properties.put("num.stream.threads", threads);
        properties.put("commit.interval.ms", "100");
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(application + "-lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(String::valueOf)
            .to(application + "-counted", Produced.with(Serdes.String(), Serdes.String()));
        KStream<String, String> orders =
            builder.stream(application + "-orders", Consumed.with(Serdes.String(), Serdes.String()));
        KStream<String, String> payments =
            builder.stream(application + "-payments", Consumed.with(Serdes.String(), Serdes.String()));
        orders.join(
            payments,
            (order, payment) -> order + "+" + payment,
            JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(10), Duration.ofHours(1)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withStoreName("pairs")
        ).to(application + "-joined", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setGlobalStateRestoreListener(new Restores());
        streams.setUncaughtExceptionHandler(failure -> {
            failure.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> {
            System.out.println(now);
            if (now == KafkaStreams.State.ERROR) {
                Runtime.getRuntime().halt(1);
            }
        });
        streams.start();
        Thread.currentThread().join();
    }
}
