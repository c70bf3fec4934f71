import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
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
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Reads cases, a line each, and answers what Kafka's StandardAuthorizer decides: see make_decisions.py. */
public class Decisions {
    record Client(String name, String host) implements AuthorizableRequestContext {
        public String listenerName() { return "L"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SASL_PLAINTEXT; }
        public KafkaPrincipal principal() { return new KafkaPrincipal("User", name); }
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException error) {
                throw new IllegalStateException(error);
            }
        }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return "c"; }
        public int correlationId() { return 0; }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;) {
            String[] parts = line.split(";", -1);
            StandardAuthorizer authorizer = new StandardAuthorizer();
            Map<String, Object> config = new HashMap<>();
            config.put("node.id", "1");
            config.put("super.users", "User:super");
            config.put("allow.everyone.if.no.acl.found", parts[0]);
            authorizer.configure(config);
            authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
            Map<Uuid, StandardAcl> acls = new LinkedHashMap<>();
            for (String each : parts[1].isEmpty() ? new String[0] : parts[1].split("\\|")) {
                String[] field = each.split(",", -1);
                acls.put(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.valueOf(field[0]), field[1], PatternType.valueOf(field[2]), field[3], field[4],
                    AclOperation.valueOf(field[5]), AclPermissionType.valueOf(field[6])));
            }
            authorizer.loadSnapshot(acls);
            authorizer.completeInitialLoad();
            StringBuilder answers = new StringBuilder();
            for (String each : parts[2].split("\\|")) {
                String[] field = each.split(",", -1);
                Client client = new Client(field[0], field[1]);
                AclOperation operation = AclOperation.valueOf(field[2]);
                ResourceType type = ResourceType.valueOf(field[3]);
                AuthorizationResult result;
                if (field[4].isEmpty()) {
                    result = authorizer.authorizeByResourceType(client, operation, type);
                } else {
                    ResourcePattern pattern = new ResourcePattern(type, field[4], PatternType.LITERAL);
                    List<Action> actions = new ArrayList<>();
                    actions.add(new Action(operation, pattern, 1, false, false));
                    result = authorizer.authorize(client, actions).get(0);
                }
                answers.append(result == AuthorizationResult.ALLOWED ? '1' : '0');
            }
            System.out.println(answers);
        }
    }
}
