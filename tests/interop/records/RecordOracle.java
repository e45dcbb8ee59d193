import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Kafka's own classes as the oracle for metadata records.
 *
 * <p>Reads one line per record: type, version, the framed bytes in hexadecimal, the record as Kafka's JSON. Answers each
 * with the bytes that Kafka writes for that JSON, or with "!" and a reason when Kafka does not read the given bytes as
 * the same record. With the argument "types" it lists the types and versions that this Kafka knows, and ends.
 */
public class RecordOracle {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 1 && arguments[0].equals("types")) {
            for (MetadataRecordType type : MetadataRecordType.values()) {
                System.out.println(
                        type.id() + " " + type.lowestSupportedVersion() + " " + type.highestSupportedVersion());
            }
            return;
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        ObjectMapper mapper = new ObjectMapper();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split(" ", 4);
            System.out.println(
                    answer(
                            Short.parseShort(parts[0]),
                            Short.parseShort(parts[1]),
                            HexFormat.of().parseHex(parts[2]),
                            mapper.readTree(parts[3])));
        }
    }

    private static String answer(short type, short version, byte[] given, JsonNode json) {
        try {
            ApiMessage record = MetadataJsonConverters.readJson(json, type, version);
            ApiMessageAndVersion framed = new ApiMessageAndVersion(record, version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(framed, cache));
            MetadataRecordSerde.INSTANCE.write(framed, cache, new ByteBufferAccessor(buffer));
            ApiMessageAndVersion read =
                    MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(ByteBuffer.wrap(given)), given.length);
            if (!read.equals(framed)) {
                return "! read as " + read + ", not " + framed;
            }
            return HexFormat.of().formatHex(buffer.array());
        } catch (Exception error) {
            return "! " + error.toString().replace('\n', ' ');
        }
    }
}
