import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client behind the verbs of tests/interop/drivers: one JSON command per line in, one JSON answer per line out. */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int VALUE_SHOWN_MAX = 1024;

    private final String bootstrap;
    private Admin admin;
    private KafkaConsumer<byte[], byte[]> member;

    private Driver(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(JSON.writeValueAsString(driver.answer(JSON.readTree(line))));
            System.out.flush();
        }
        if (driver.member != null) driver.member.close();
        if (driver.admin != null) driver.admin.close();
        System.exit(0);
    }

    private ObjectNode answer(JsonNode command) {
        try {
            return perform(command.get("verb").asText(), command);
        } catch (Throwable thrown) {
            Throwable cause = thrown instanceof ExecutionException && thrown.getCause() != null ? thrown.getCause() : thrown;
            Errors error = Errors.forException(cause);
            ObjectNode answer = JSON.createObjectNode();
            ObjectNode told = answer.putObject("error");
            if (error == Errors.UNKNOWN_SERVER_ERROR) told.putNull("code");
            else told.put("code", error.code());
            told.put("name", cause.getClass().getSimpleName()).put("message", String.valueOf(cause.getMessage()));
            return answer;
        }
    }

    private ObjectNode perform(String verb, JsonNode command) throws Exception {
        switch (verb) {
            case "produce": return produce(command);
            case "consume": return consume(command);
            case "offsets_for_times": return offsetsForTimes(command);
            case "watermarks": return watermarks(command);
            case "commit": return commit(command);
            case "committed": return committed(command);
            case "join": return join(command);
            case "poll": return poll(command);
            case "leave": return leave();
            case "create_topic": return createTopic(command);
            case "list_topics": return listTopics();
            case "describe_topic": return describeTopic(command);
            case "describe_configs": return describeConfigs(command);
            case "alter_config": return alterConfig(command);
            case "add_partitions": return addPartitions(command);
            case "delete_topic": return deleteTopic(command);
            case "list_groups": return listGroups();
            case "describe_group": return describeGroup(command);
            case "delete_group": return deleteGroup(command);
            case "delete_records": return deleteRecords(command);
            default: return JSON.createObjectNode().put("unsupported", "no verb " + verb);
        }
    }

    private static String text(JsonNode command, String name) {
        return command.get(name).asText();
    }

    private static byte[] bytesOrNull(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] valueToSend(JsonNode record) {
        if (!record.has("value_size")) return bytesOrNull(record.get("value"));
        byte[] value = new byte[record.get("value_size").asInt()];
        byte[] pattern = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
        for (int index = 0; index < value.length; index++) value[index] = pattern[index % pattern.length];
        return value;
    }

    private static TopicPartition target(JsonNode command) {
        return new TopicPartition(text(command, "topic"), command.path("partition").asInt(0));
    }

    private ObjectNode produce(JsonNode command) throws Exception {
        int sizeMax = command.path("size_bytes_max").asInt(1_048_576);
        long pauseMs = command.path("pause_ms").asLong(0);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", command.path("codec").asText("none"));
        settings.put("acks", command.path("acks").asText("all"));
        settings.put("enable.idempotence", command.path("idempotent").asBoolean(false));
        settings.put("max.request.size", sizeMax);
        settings.put("buffer.memory", Math.max(33_554_432L, 2L * sizeMax));
        settings.put("linger.ms", pauseMs > 0 ? 0 : 20);
        settings.put("retry.backoff.ms", 50);
        settings.put("reconnect.backoff.ms", 20);
        settings.put("reconnect.backoff.max.ms", 200);
        settings.put("delivery.timeout.ms", 60_000);
        settings.put("request.timeout.ms", 20_000);
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode acknowledged = answer.putArray("acknowledged");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (JsonNode record : command.get("records")) {
                Long timestamp = record.hasNonNull("timestamp_ms") ? record.get("timestamp_ms").asLong() : null;
                ProducerRecord<byte[], byte[]> outgoing = new ProducerRecord<>(text(command, "topic"),
                    record.path("partition").asInt(0), timestamp, bytesOrNull(record.get("key")), valueToSend(record));
                for (JsonNode header : record.path("headers"))
                    outgoing.headers().add(header.get(0).asText(), bytesOrNull(header.get(1)));
                sent.add(producer.send(outgoing));
                if (pauseMs > 0) Thread.sleep(pauseMs);
            }
            for (Future<RecordMetadata> one : sent) {
                RecordMetadata where = one.get(70, TimeUnit.SECONDS);
                acknowledged.addArray().add(where.partition()).add(where.offset());
            }
        }
        return answer;
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", false);
        if (group != null) settings.put("group.id", group);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void show(ArrayNode records, ConsumerRecord<byte[], byte[]> record) throws Exception {
        ObjectNode shown = records.addObject();
        shown.put("partition", record.partition()).put("offset", record.offset()).put("timestamp_ms", record.timestamp());
        shown.put("key", record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8));
        byte[] value = record.value();
        boolean small = value != null && value.length <= VALUE_SHOWN_MAX;
        shown.put("value", small ? new String(value, StandardCharsets.UTF_8) : null);
        shown.put("value_size", value == null ? -1 : value.length);
        shown.put("value_sha256", value == null ? ""
            : HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(value)));
        ArrayNode headers = shown.putArray("headers");
        for (Header header : record.headers()) {
            byte[] raw = header.value();
            headers.addArray().add(header.key()).add(raw == null ? null : new String(raw, StandardCharsets.UTF_8));
        }
    }

    private ObjectNode consume(JsonNode command) throws Exception {
        int count = command.get("count").asInt();
        long deadline = System.nanoTime() + command.path("timeout_ms").asLong(30_000) * 1_000_000;
        Map<String, Object> settings = Map.of("auto.offset.reset", "none", "max.partition.fetch.bytes",
            command.path("size_bytes_max").asInt(1 << 20), "max.poll.records", Math.max(1, count));
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = answer.putArray("records");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null, settings)) {
            consumer.assign(List.of(target(command)));
            consumer.seek(target(command), command.path("offset").asLong(0));
            while (records.size() < count && System.nanoTime() < deadline)
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200)))
                    if (records.size() < count) show(records, record);
        }
        return answer;
    }

    private ObjectNode offsetsForTimes(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode offsets = answer.putArray("offsets");
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null, Map.of())) {
            for (JsonNode timestamp : command.get("timestamps_ms")) {
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(target(command), timestamp.asLong())).get(target(command));
                offsets.add(found == null ? -1 : found.offset());
            }
        }
        return answer;
    }

    private ObjectNode watermarks(JsonNode command) {
        List<TopicPartition> targets = List.of(target(command));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(null, Map.of())) {
            return JSON.createObjectNode()
                .put("low", consumer.beginningOffsets(targets).get(targets.get(0)))
                .put("high", consumer.endOffsets(targets).get(targets.get(0)));
        }
    }

    private ObjectNode commit(JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(text(command, "group"), Map.of())) {
            consumer.assign(List.of(target(command)));
            consumer.commitSync(Map.of(target(command), new OffsetAndMetadata(command.get("offset").asLong())));
        }
        return JSON.createObjectNode();
    }

    private ObjectNode committed(JsonNode command) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(text(command, "group"), Map.of())) {
            OffsetAndMetadata found = consumer.committed(Set.of(target(command))).get(target(command));
            return JSON.createObjectNode().put("offset", found == null ? -1 : found.offset());
        }
    }

    private ObjectNode join(JsonNode command) {
        Map<String, Object> settings = new HashMap<>(Map.of("group.protocol", "classic", "auto.offset.reset", "earliest"));
        command.path("settings").properties().forEach(one -> settings.put(one.getKey(), one.getValue().asText()));
        if (settings.get("group.protocol").equals("classic")) {
            settings.put("session.timeout.ms", command.path("session_timeout_ms").asInt(10_000));
            settings.put("heartbeat.interval.ms", 500);
        }
        member = consumer(text(command, "group"), settings);
        if (command.hasNonNull("pattern")) member.subscribe(new SubscriptionPattern(text(command, "pattern")));
        else member.subscribe(List.of(text(command, "topic")));
        return JSON.createObjectNode();
    }

    private ObjectNode poll(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode records = JSON.createArrayNode();
        long deadline = System.nanoTime() + command.get("duration_ms").asLong() * 1_000_000;
        while (System.nanoTime() < deadline)
            for (ConsumerRecord<byte[], byte[]> record : member.poll(Duration.ofMillis(100))) show(records, record);
        if (!records.isEmpty()) member.commitSync();
        ArrayNode assignment = answer.putArray("assignment");
        Set<Integer> sorted = new TreeSet<>();
        for (TopicPartition one : member.assignment()) sorted.add(one.partition());
        sorted.forEach(assignment::add);
        answer.set("records", records);
        return answer;
    }

    private ObjectNode leave() {
        member.close();
        member = null;
        return JSON.createObjectNode();
    }

    private Admin admin() {
        if (admin == null) admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "request.timeout.ms", 20_000));
        return admin;
    }

    private ObjectNode createTopic(JsonNode command) throws Exception {
        Map<String, String> configs = new HashMap<>();
        command.path("configs").fields().forEachRemaining(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        NewTopic topic = new NewTopic(text(command, "topic"), command.path("partitions").asInt(1), (short) 1).configs(configs);
        admin().createTopics(List.of(topic)).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode listTopics() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ArrayNode topics = answer.putArray("topics");
        new TreeSet<>(admin().listTopics().names().get()).forEach(topics::add);
        return answer;
    }

    private ObjectNode describeTopic(JsonNode command) throws Exception {
        String topic = text(command, "topic");
        TopicDescription found = admin().describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        ObjectNode answer = JSON.createObjectNode().put("partitions", found.partitions().size());
        ArrayNode leaders = answer.putArray("leaders");
        for (TopicPartitionInfo partition : found.partitions()) leaders.add(partition.leader().id());
        return answer;
    }

    private static ConfigResource resource(JsonNode command) {
        return new ConfigResource(ConfigResource.Type.TOPIC, text(command, "topic"));
    }

    private ObjectNode describeConfigs(JsonNode command) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        ObjectNode configs = answer.putObject("configs");
        for (ConfigEntry entry : admin().describeConfigs(List.of(resource(command))).all().get().get(resource(command)).entries())
            configs.put(entry.name(), entry.value());
        return answer;
    }

    private ObjectNode alterConfig(JsonNode command) throws Exception {
        Collection<AlterConfigOp> operations = new ArrayList<>();
        command.get("configs").fields().forEachRemaining(entry -> operations.add(
            new AlterConfigOp(new ConfigEntry(entry.getKey(), entry.getValue().asText()), AlterConfigOp.OpType.SET)));
        admin().incrementalAlterConfigs(Map.of(resource(command), operations)).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode addPartitions(JsonNode command) throws Exception {
        NewPartitions total = NewPartitions.increaseTo(command.get("total").asInt());
        admin().createPartitions(Map.of(text(command, "topic"), total)).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode deleteTopic(JsonNode command) throws Exception {
        admin().deleteTopics(List.of(text(command, "topic"))).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode listGroups() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        Set<String> names = new TreeSet<>();
        for (GroupListing group : admin().listGroups().all().get()) names.add(group.groupId());
        ArrayNode groups = answer.putArray("groups");
        names.forEach(groups::add);
        return answer;
    }

    private ObjectNode describeGroup(JsonNode command) throws Exception {
        String group = text(command, "group");
        var found = admin().describeConsumerGroups(List.of(group)).all().get().get(group);
        return JSON.createObjectNode().put("state", found.groupState().toString()).put("members", found.members().size());
    }

    private ObjectNode deleteGroup(JsonNode command) throws Exception {
        admin().deleteConsumerGroups(List.of(text(command, "group"))).all().get();
        return JSON.createObjectNode();
    }

    private ObjectNode deleteRecords(JsonNode command) throws Exception {
        TopicPartition target = target(command);
        RecordsToDelete before = RecordsToDelete.beforeOffset(command.get("offset").asLong());
        long low = admin().deleteRecords(Map.of(target, before)).lowWatermarks().get(target).get().lowWatermark();
        return JSON.createObjectNode().put("low", low);
    }
}
