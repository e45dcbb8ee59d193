// Run as a single file: counts the words of lines with Kafka Streams, exactly once. Every count is written, none merged
// with the next. Says when it is running, and goes on until it is killed.

import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

public class WordCount {
    public static void main(String[] arguments) throws InterruptedException {
        String bootstrap = arguments[0];
        String application = arguments[1];
        String directory = arguments[2];
        String source = arguments[3];
        String target = arguments[4];
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("application.id", application);
        properties.put("state.dir", directory);
        properties.put("processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2);
        properties.put("group.protocol", "classic");
        properties.put("num.stream.threads", "2");
        properties.put("commit.interval.ms", "100");
        properties.put("statestore.cache.max.bytes", "0");
        properties.put("auto.offset.reset", "earliest");
        // The group waits for who was killed until then.
        properties.put("session.timeout.ms", "6000");
        properties.put("heartbeat.interval.ms", "1000");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(source, Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
            .toStream()
            .mapValues(String::valueOf)
            .to(target, Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
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
