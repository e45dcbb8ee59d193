import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.ConnectSchema;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/**
 * Kafka Connect's own classes as the oracle for converters, transforms and predicates.
 *
 * <p>Reads a JSON object per line (see {@code cases.py}) and answers each with a JSON object: the result, or the class
 * and the message of the error.
 */
public class ConnectOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream output = new PrintStream(System.out, true, "UTF-8");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            output.println(answer(MAPPER.readTree(line)));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode result = MAPPER.createObjectNode();
        try {
            switch (question.get("op").asText()) {
                case "transform" -> transform(question, result);
                case "predicate" -> predicate(question, result);
                case "to_bytes" -> toBytes(question, result);
                case "from_bytes" -> fromBytes(question, result);
                case "config" -> config(question, result);
                default -> throw new IllegalArgumentException("unknown operation");
            }
        } catch (Throwable error) {
            result.removeAll();
            result.put("error", error.getClass().getSimpleName());
            result.put("message", String.valueOf(error.getMessage()));
        }
        return result;
    }

    private static Map<String, String> settings(JsonNode question) {
        Map<String, String> found = new HashMap<>();
        question.get("config").properties().forEach(entry -> found.put(entry.getKey(), entry.getValue().textValue()));
        return found;
    }

    private static Object instance(JsonNode question) throws Exception {
        return Class.forName(question.get("class").asText()).getDeclaredConstructor().newInstance();
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void transform(JsonNode question, ObjectNode result) throws Exception {
        Transformation transformation = (Transformation) instance(question);
        transformation.configure(settings(question));
        ConnectRecord record = transformation.apply(record(question.get("record")));
        if (record == null) {
            result.put("dropped", true);
        } else {
            result.set("record", encoded(record));
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void predicate(JsonNode question, ObjectNode result) throws Exception {
        Predicate predicate = (Predicate) instance(question);
        predicate.configure(settings(question));
        result.put("is_true", predicate.test(record(question.get("record"))));
    }

    private static void toBytes(JsonNode question, ObjectNode result) throws Exception {
        Schema schema = schema(question.get("schema"));
        Object value = value(schema, question.get("value"));
        Object converter = instance(question);
        byte[] bytes;
        if (question.path("header").asBoolean()) {
            ((HeaderConverter) converter).configure(settings(question));
            bytes = ((HeaderConverter) converter).fromConnectHeader("t", "h", schema, value);
        } else {
            ((Converter) converter).configure(settings(question), false);
            bytes = ((Converter) converter).fromConnectData("t", schema, value);
        }
        result.put("bytes", bytes == null ? null : HexFormat.of().formatHex(bytes));
    }

    private static void fromBytes(JsonNode question, ObjectNode result) throws Exception {
        byte[] bytes = question.get("bytes").isNull() ? null : HexFormat.of().parseHex(question.get("bytes").asText());
        Object converter = instance(question);
        SchemaAndValue found;
        if (question.path("header").asBoolean()) {
            ((HeaderConverter) converter).configure(settings(question));
            found = ((HeaderConverter) converter).toConnectHeader("t", "h", bytes);
        } else {
            ((Converter) converter).configure(settings(question), false);
            found = ((Converter) converter).toConnectData("t", bytes);
        }
        result.set("schema", found == null ? null : encoded(found.schema()));
        result.set("value", found == null ? null : encoded(found.value()));
    }

    private static void config(JsonNode question, ObjectNode result) throws Exception {
        Object made = instance(question);
        ConfigDef definition = (ConfigDef) made.getClass().getMethod("config").invoke(made);
        ArrayNode keys = result.putArray("keys");
        for (ConfigDef.ConfigKey key : definition.configKeys().values()) {
            ObjectNode found = keys.addObject();
            found.put("name", key.name);
            found.put("type", key.type.name());
            found.put("required", !key.hasDefault());
            found.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            found.put("importance", key.importance.name());
            found.put("group", key.group);
            found.put("order", key.orderInGroup);
            found.put("width", key.width.name());
            found.put("display_name", key.displayName);
        }
    }

    private static ConnectRecord<?> record(JsonNode found) {
        Schema keySchema = schema(found.get("key_schema"));
        Schema valueSchema = schema(found.get("value_schema"));
        Object key = value(keySchema, found.get("key"));
        Object value = value(valueSchema, found.get("value"));
        String topic = found.get("topic").textValue();
        Integer partition = found.get("partition").isNull() ? null : found.get("partition").intValue();
        Long timestamp = found.get("timestamp").isNull() ? null : found.get("timestamp").longValue();
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode header : found.get("headers")) {
            Schema schema = schema(header.get("schema"));
            headers.add(header.get("key").asText(), new SchemaAndValue(schema, value(schema, header.get("value"))));
        }
        if (found.get("offset").isNull()) {
            return new SourceRecord(
                    Map.of(), Map.of(), topic, partition, keySchema, key, valueSchema, value, timestamp, headers);
        }
        long offset = found.get("offset").longValue();
        return new SinkRecord(
                topic,
                partition == null ? 0 : partition,
                keySchema,
                key,
                valueSchema,
                value,
                offset,
                timestamp,
                timestamp == null ? TimestampType.NO_TIMESTAMP_TYPE : TimestampType.CREATE_TIME,
                headers);
    }

    private static ObjectNode encoded(ConnectRecord<?> record) {
        ObjectNode result = MAPPER.createObjectNode();
        result.put("topic", record.topic());
        result.put("partition", record.kafkaPartition());
        result.set("key_schema", encoded(record.keySchema()));
        result.set("key", encoded(record.key()));
        result.set("value_schema", encoded(record.valueSchema()));
        result.set("value", encoded(record.value()));
        result.put("timestamp", record.timestamp());
        ArrayNode headers = result.putArray("headers");
        for (Header header : record.headers()) {
            ObjectNode each = headers.addObject();
            each.put("key", header.key());
            each.set("schema", encoded(header.schema()));
            each.set("value", encoded(header.value()));
        }
        result.put("offset", record instanceof SinkRecord ? ((SinkRecord) record).kafkaOffset() : null);
        return result;
    }

    private static Schema schema(JsonNode found) {
        if (found == null || found.isNull()) {
            return null;
        }
        Schema.Type type = Schema.Type.valueOf(found.get("type").asText().toUpperCase());
        SchemaBuilder builder =
                switch (type) {
                    case ARRAY -> SchemaBuilder.array(schema(found.get("element")));
                    case MAP -> SchemaBuilder.map(schema(found.get("key")), schema(found.get("element")));
                    default -> new SchemaBuilder(type);
                };
        if (type == Schema.Type.STRUCT) {
            for (JsonNode field : found.get("fields")) {
                builder.field(field.get(0).asText(), schema(field.get(1)));
            }
        }
        if (found.path("optional").asBoolean()) {
            builder.optional();
        }
        if (found.has("name")) {
            builder.name(found.get("name").asText());
        }
        if (found.has("version")) {
            builder.version(found.get("version").asInt());
        }
        if (found.has("doc")) {
            builder.doc(found.get("doc").asText());
        }
        if (found.has("parameters")) {
            found.get("parameters").properties().forEach(each -> builder.parameter(each.getKey(), each.getValue().asText()));
        }
        Schema built = builder.build();
        if (!found.has("default")) {
            return built;
        }
        // The builder refuses a default of a struct: it compares the struct's schema with itself.
        Object value = value(built, found.get("default"));
        return new ConnectSchema(
                type,
                built.isOptional(),
                value,
                built.name(),
                built.version(),
                built.doc(),
                built.parameters(),
                type == Schema.Type.STRUCT ? built.fields() : null,
                type == Schema.Type.MAP ? built.keySchema() : null,
                type == Schema.Type.MAP || type == Schema.Type.ARRAY ? built.valueSchema() : null);
    }

    private static JsonNode encoded(Schema schema) {
        if (schema == null) {
            return MAPPER.nullNode();
        }
        ObjectNode result = MAPPER.createObjectNode();
        result.put("type", schema.type().getName());
        if (schema.type() == Schema.Type.MAP) {
            result.set("key", encoded(schema.keySchema()));
        }
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY) {
            result.set("element", encoded(schema.valueSchema()));
        }
        if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = result.putArray("fields");
            for (Field field : schema.fields()) {
                fields.addArray().add(field.name()).add(encoded(field.schema()));
            }
        }
        if (schema.isOptional()) {
            result.put("optional", true);
        }
        if (schema.name() != null) {
            result.put("name", schema.name());
        }
        if (schema.version() != null) {
            result.put("version", schema.version());
        }
        if (schema.doc() != null) {
            result.put("doc", schema.doc());
        }
        if (schema.parameters() != null) {
            ObjectNode parameters = result.putObject("parameters");
            schema.parameters().forEach(parameters::put);
        }
        if (schema.defaultValue() != null) {
            result.set("default", encoded(schema.defaultValue()));
        }
        return result;
    }

    /** The schema is needed for structs alone; all else says its type itself. */
    private static Object value(Schema schema, JsonNode found) {
        if (found == null || found.isNull()) {
            return null;
        }
        Map.Entry<String, JsonNode> entry = found.properties().iterator().next();
        JsonNode given = entry.getValue();
        switch (entry.getKey()) {
            case "int8":
                return (byte) given.intValue();
            case "int16":
                return (short) given.intValue();
            case "int32":
                return given.intValue();
            case "int64":
                return given.longValue();
            case "float32":
                return Float.parseFloat(given.asText());
            case "float64":
                return Double.parseDouble(given.asText());
            case "boolean":
                return given.booleanValue();
            case "string":
                return given.textValue();
            case "bytes":
                return HexFormat.of().parseHex(given.asText());
            case "decimal":
                return new BigDecimal(given.asText());
            case "instant":
                return new Date(given.longValue());
            case "array":
                List<Object> list = new ArrayList<>();
                given.forEach(each -> list.add(value(schema == null ? null : schema.valueSchema(), each)));
                return list;
            case "map":
                Map<Object, Object> map = new LinkedHashMap<>();
                for (JsonNode each : given) {
                    map.put(
                            value(schema == null ? null : schema.keySchema(), each.get(0)),
                            value(schema == null ? null : schema.valueSchema(), each.get(1)));
                }
                return map;
            case "struct":
                Struct struct = new Struct(schema);
                given.properties()
                        .forEach(each ->
                                struct.put(each.getKey(), value(schema.field(each.getKey()).schema(), each.getValue())));
                return struct;
            default:
                throw new IllegalArgumentException(entry.getKey());
        }
    }

    private static JsonNode encoded(Object value) {
        ObjectNode result = MAPPER.createObjectNode();
        if (value == null) {
            return MAPPER.nullNode();
        } else if (value instanceof Byte) {
            result.put("int8", (Byte) value);
        } else if (value instanceof Short) {
            result.put("int16", (Short) value);
        } else if (value instanceof Integer) {
            result.put("int32", (Integer) value);
        } else if (value instanceof Long) {
            result.put("int64", (Long) value);
        } else if (value instanceof Float) {
            result.put("float32", value.toString());
        } else if (value instanceof Double) {
            result.put("float64", value.toString());
        } else if (value instanceof Boolean) {
            result.put("boolean", (Boolean) value);
        } else if (value instanceof String) {
            result.put("string", (String) value);
        } else if (value instanceof byte[]) {
            result.put("bytes", HexFormat.of().formatHex((byte[]) value));
        } else if (value instanceof ByteBuffer) {
            result.put("bytes", HexFormat.of().formatHex(((ByteBuffer) value).array()));
        } else if (value instanceof BigDecimal) {
            result.put("decimal", value.toString());
        } else if (value instanceof Date) {
            result.put("instant", ((Date) value).getTime());
        } else if (value instanceof List) {
            ArrayNode array = result.putArray("array");
            ((List<?>) value).forEach(each -> array.add(encoded(each)));
        } else if (value instanceof Map) {
            ArrayNode array = result.putArray("map");
            ((Map<?, ?>) value).forEach((key, each) -> array.addArray().add(encoded(key)).add(encoded(each)));
        } else if (value instanceof Struct) {
            ObjectNode struct = result.putObject("struct");
            for (Field field : ((Struct) value).schema().fields()) {
                struct.set(field.name(), encoded(((Struct) value).getWithoutDefault(field.name())));
            }
        } else {
            throw new IllegalArgumentException(value.getClass().getName());
        }
        return result;
    }
}
