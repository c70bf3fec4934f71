// Answers the cases of make.py with the real kafka-clients: what its assignors assign, and the bytes it puts on the wire.
// One JSON case a line on standard input, one JSON answer a line on standard output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class Golden {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "off");
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(lines.nextLine()))));
        }
    }

    private static ObjectNode answer(JsonNode group) throws Exception {
        String strategy = group.get("strategy").asText();
        Map<String, Subscription> subscriptions = new HashMap<>();
        Map<String, String> sent = new HashMap<>();
        for (JsonNode member : group.get("members")) {
            Subscription subscription = subscription(strategy, member);
            subscriptions.put(member.get("id").asText(), subscription);
            // before the assignor reads the user data, which moves the position in its buffer
            sent.put(member.get("id").asText(), hex(ConsumerProtocol.serializeSubscription(subscription)));
        }
        Cluster cluster = cluster(group.get("topics"));
        Map<String, Assignment> assignments =
            assignor(strategy).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        ObjectNode answer = JSON.createObjectNode();
        assignments.forEach((id, assignment) -> {
            ObjectNode member = answer.putObject(id);
            ArrayNode partitions = member.putArray("partitions");
            for (TopicPartition partition : assignment.partitions()) {
                partitions.addArray().add(partition.topic()).add(partition.partition());
            }
            member.put("subscription_bytes", sent.get(id));
            member.put("assignment_bytes", hex(ConsumerProtocol.serializeAssignment(assignment)));
        });
        return answer;
    }

    private static ConsumerPartitionAssignor assignor(String strategy) {
        return switch (strategy) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(strategy);
        };
    }

    /** What the consumer itself would send: its assignor is told of its last assignment and then asked for user data. */
    private static Subscription subscription(String strategy, JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.path("owned").forEach(claim -> owned.add(new TopicPartition(claim.get(0).asText(), claim.get(1).asInt())));
        int generation = member.path("generation").asInt(-1);
        Optional<String> instance = Optional.ofNullable(member.path("group_instance_id").asText(null));
        Optional<String> rack = Optional.ofNullable(member.path("rack").asText(null));
        ConsumerPartitionAssignor assignor = assignor(strategy);
        if (generation >= 0) {
            String id = member.get("id").asText();
            assignor.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, id, instance));
        }
        Set<String> subscribed = new HashSet<>(topics);
        boolean cooperative = strategy.startsWith("cooperative");
        Subscription subscription = new Subscription(topics, assignor.subscriptionUserData(subscribed),
            cooperative ? owned : List.of(), generation, rack);
        subscription.setGroupInstanceId(instance);
        return subscription;
    }

    /** Replicas on one broker per rack; without racks, on one broker that names none. */
    private static Cluster cluster(JsonNode topics) {
        Map<String, Node> brokers = new HashMap<>();
        Node nowhere = new Node(0, "localhost", 9092);
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.fields().forEachRemaining(topic -> {
            for (int number = 0; number < topic.getValue().get("partitions").asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : topic.getValue().path("racks").path(number)) {
                    replicas.add(brokers.computeIfAbsent(rack.asText(),
                        name -> new Node(brokers.size() + 1, "localhost", 9092, name)));
                }
                Node[] on = replicas.isEmpty() ? new Node[] {nowhere} : replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(topic.getKey(), number, on[0], on, on));
            }
        });
        Set<Node> nodes = new HashSet<>(brokers.values());
        nodes.add(nowhere);
        return new Cluster("cluster", nodes, partitions, Set.of(), Set.of());
    }

    private static String hex(ByteBuffer bytes) {
        byte[] copy = new byte[bytes.remaining()];
        bytes.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
