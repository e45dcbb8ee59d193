import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/** Reads lines of a reader's schema, a tab and a writer's; prints Avro's verdict on each. */
public final class AvroCompatibility {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        StringBuilder verdicts = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] pair = line.split("\t");
            String verdict;
            try {
                Schema reader = new Schema.Parser().parse(pair[0]);
                Schema writer = new Schema.Parser().parse(pair[1]);
                verdict = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getType().name();
            } catch (RuntimeException error) {
                verdict = "INVALID " + String.valueOf(error.getMessage()).replace('\n', ' ');
            }
            verdicts.append(verdict).append('\n');
        }
        System.out.print(verdicts);
    }
}
