import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;

/**
 * Without arguments it lists what a broker of Kafka can be configured with, a line each. With any, it reads lines
 * name=value, and answers for each whether a broker would start with it. See make_broker_configs.py.
 */
public class BrokerConfigs {
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            list();
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null;) {
            Properties properties = new Properties();
            properties.putAll(Map.of(
                "process.roles", "broker,controller", "node.id", "1", "controller.listener.names", "C",
                "listeners", "PLAINTEXT://127.0.0.1:9092,C://127.0.0.1:9093",
                "advertised.listeners", "PLAINTEXT://127.0.0.1:9092", "controller.quorum.voters", "1@127.0.0.1:9093",
                "listener.security.protocol.map",
                "C:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"));
            int equals = line.indexOf('=');
            properties.put(line.substring(0, equals), line.substring(equals + 1));
            String answer = "taken";
            try {
                KafkaConfig.fromProps(properties, false);
            } catch (Exception refused) {
                answer = "refused: " + refused.getMessage();
            }
            System.out.println(answer.replace('\n', ' '));
        }
    }

    private static void list() {
        for (ConfigDef.ConfigKey key : new TreeMap<>(AbstractKafkaConfig.CONFIG_DEF.configKeys()).values()) {
            String value = ConfigDef.convertToString(key.hasDefault() ? key.defaultValue : null, key.type);
            String check = key.validator == null ? "" : key.validator.toString();
            System.out.println(String.join("\t",
                key.name, key.type.name(), value == null ? "null" : value, check.contains("Lambda") ? "" : check));
        }
    }
}
