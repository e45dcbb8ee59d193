// Run as a single file: prints the names of all settings of Kafka Streams.

import org.apache.kafka.streams.StreamsConfig;

public class StreamsSettings {
    public static void main(String[] arguments) {
        StreamsConfig.configDef().names().forEach(System.out::println);
    }
}
