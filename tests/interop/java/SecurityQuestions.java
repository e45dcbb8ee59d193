// Run as a single file: answers questions on standard input with Kafka's own classes, a line for a line; fields are
// separated by tabs. World: a new authorizer. Acl: one more entry of it. Ask: what it decides. Then names: of principals
// by rules for Kerberos and for certificates, and distinguished names as Java writes them.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

public class SecurityQuestions {
    record Client(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() {
            return "PLAINTEXT";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        public int requestType() {
            return 0;
        }

        public int requestVersion() {
            return 0;
        }

        public String clientId() {
            return "";
        }

        public int correlationId() {
            return 0;
        }
    }

    static StandardAuthorizer authorizer = new StandardAuthorizer();
    static final Map<String, InetAddress> ADDRESSES = new HashMap<>();

    static StandardAuthorizer world(String superUsers, String allowsEveryone) {
        StandardAuthorizer made = new StandardAuthorizer();
        made.configure(Map.of("super.users", superUsers, "allow.everyone.if.no.acl.found", allowsEveryone));
        made.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        made.completeInitialLoad();
        return made;
    }

    static KafkaPrincipal principal(String text) {
        int colon = text.indexOf(':');
        return new KafkaPrincipal(text.substring(0, colon), text.substring(colon + 1));
    }

    static String ask(String[] asked) throws Exception {
        InetAddress address = ADDRESSES.get(asked[2]);
        if (address == null) {
            address = InetAddress.getByName(asked[2]);
            ADDRESSES.put(asked[2], address);
        }
        Client client = new Client(principal(asked[1]), address);
        AclOperation operation = AclOperation.fromCode(Byte.parseByte(asked[3]));
        ResourceType type = ResourceType.fromCode(Byte.parseByte(asked[4]));
        ResourcePattern resource = new ResourcePattern(type, asked[5], PatternType.LITERAL);
        List<Action> actions = List.of(new Action(operation, resource, 1, false, false));
        boolean decided = authorizer.authorize(client, actions).get(0) == AuthorizationResult.ALLOWED;
        boolean any = authorizer.authorizeByResourceType(client, operation, type) == AuthorizationResult.ALLOWED;
        return decided + " " + any;
    }

    static String answer(String[] asked) throws Exception {
        switch (asked[0]) {
            case "world":
                authorizer = world(asked[1], asked[2]);
                return "";
            case "acl":
                StandardAcl entry = new StandardAcl(
                    ResourceType.fromCode(Byte.parseByte(asked[1])), asked[2],
                    PatternType.fromCode(Byte.parseByte(asked[3])), asked[4], asked[5],
                    AclOperation.fromCode(Byte.parseByte(asked[6])), AclPermissionType.fromCode(Byte.parseByte(asked[7])));
                authorizer.addAcl(Uuid.randomUuid(), entry);
                return "";
            case "ask":
                return ask(asked);
            case "kerberos":
                List<String> rules = Arrays.asList(asked[2].split(","));
                return KerberosShortNamer.fromUnparsedRules(asked[1], rules).shortName(KerberosName.parse(asked[3]));
            case "certificate":
                return SslPrincipalMapper.fromRules(asked[1]).getName(asked[2]);
            case "name":
                return new X500Principal(java.util.HexFormat.of().parseHex(asked[1])).getName();
            default:
                throw new IllegalArgumentException(asked[0]);
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String answer;
            try {
                answer = "=" + answer(line.split("\t", -1));
            } catch (Exception error) {
                answer = "!" + error.getClass().getSimpleName();
            }
            out.println(answer.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"));
        }
        out.flush();
    }
}
