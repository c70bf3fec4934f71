// Runs Kafka's own assignors for the benchmark: those of kafka-clients, and the KIP-848 ones of kafka-group-coordinator.
//
//   java -cp 'libs/*' JavaAssignors.java
//
// Reads orders, one a line, and answers each with one line:
//
//   prepare ASSIGNOR PHASE PARTITIONS MEMBERS TOPICS   makes the input; answers "ready"
//   names CALLS                                        times calls from decoded subscriptions to lists of partitions
//   wire CALLS                                         times calls from JoinGroup's bytes to SyncGroup's (client side)
//
// Times are wall time in ns, one a call.
//
// ASSIGNOR is range, roundrobin, sticky, cooperative-sticky (client side), server-range or server-uniform. PHASE is
// first or leave, as benchmarks/speed/cases.py says.

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
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

@SuppressWarnings({"deprecation", "removal"})
public class JavaAssignors {
    private static final int GENERATION = 1;

    private static Supplier<Object> names;
    private static Supplier<Object> wire;

    public static void main(String[] arguments) throws Exception {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            String[] words = order.split(" ");
            switch (words[0]) {
                case "prepare":
                    prepare(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), Integer.parseInt(words[5]));
                    System.out.println("ready");
                    break;
                case "names":
                    System.out.println(time(names, Integer.parseInt(words[1])));
                    break;
                case "wire":
                    System.out.println(time(wire, Integer.parseInt(words[1])));
                    break;
                default:
                    throw new IllegalArgumentException("no such order: " + order);
            }
        }
    }

    private static String time(Supplier<Object> call, int calls) {
        StringBuilder times = new StringBuilder();
        for (int i = 0; i < calls; i++) {
            long start = System.nanoTime();
            Object answer = call.get();
            times.append(System.nanoTime() - start).append(' ');
            if (answer == null)     // the answer must be alive until the clock was read
                throw new IllegalStateException();
        }
        return times.toString().trim();
    }

    private static void prepare(String assignor, String phase, int partitions, int members, int topics) {
        names = null;
        wire = null;
        List<String> ids = new ArrayList<>();
        for (int i = 0; i < members; i++)
            ids.add(String.format("member-%06d", i));
        List<String> topicNames = new ArrayList<>();
        for (int i = 0; i < topics; i++)
            topicNames.add(String.format("topic-%05d", i));
        int[] sizes = new int[topics];
        for (int i = 0; i < topics; i++)
            sizes[i] = partitions / topics + (i < partitions % topics ? 1 : 0);
        if (assignor.startsWith("server-"))
            prepareServer(assignor, phase.equals("leave"), ids, topicNames, sizes);
        else
            prepareClient(assignor, phase.equals("leave"), ids, topicNames, sizes);
    }

    // ---- client side

    private static ConsumerPartitionAssignor clientAssignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            case "cooperative-sticky": return new CooperativeStickyAssignor();
            default: throw new IllegalArgumentException("no such assignor: " + name);
        }
    }

    private static void prepareClient(String name, boolean leave, List<String> ids, List<String> topicNames, int[] sizes) {
        Node node = new Node(0, "localhost", 9092);
        Node[] replicas = {node};
        List<PartitionInfo> infos = new ArrayList<>();
        for (int topic = 0; topic < sizes.length; topic++)
            for (int partition = 0; partition < sizes[topic]; partition++)
                infos.add(new PartitionInfo(topicNames.get(topic), partition, node, replicas, replicas));
        Cluster cluster = new Cluster("benchmark", List.of(node), infos, Set.of(), Set.of());
        Map<String, List<TopicPartition>> owned = new HashMap<>();
        if (leave) {
            GroupSubscription first = group(name, ids, topicNames, owned);
            clientAssignor(name).assign(cluster, first).groupAssignment()
                .forEach((id, given) -> owned.put(id, given.partitions()));
            ids.remove(ids.size() / 2);
        }
        GroupSubscription group = group(name, ids, topicNames, owned);
        names = () -> {
            group.groupSubscription().values().forEach(JavaAssignors::rewind);
            Map<String, Assignment> answer = clientAssignor(name).assign(cluster, group).groupAssignment();
            if (answer.size() != ids.size())
                throw new IllegalStateException("answered " + answer.size() + " members of " + ids.size());
            return answer;
        };
        Map<String, ByteBuffer> joined = new HashMap<>();
        group.groupSubscription().forEach((id, said) -> joined.put(id, ConsumerProtocol.serializeSubscription(said)));
        wire = () -> {
            Map<String, Subscription> subscriptions = new HashMap<>();
            joined.forEach((id, said) -> subscriptions.put(id, ConsumerProtocol.deserializeSubscription(said.duplicate())));
            Map<String, ByteBuffer> answer = new HashMap<>();
            clientAssignor(name).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment()
                .forEach((id, given) -> answer.put(id, ConsumerProtocol.serializeAssignment(given)));
            return answer;
        };
    }

    /** Subscriptions as the leader has them, with the user data that the assignor's own members would have sent. */
    private static GroupSubscription group(String name, List<String> ids, List<String> topicNames,
                                           Map<String, List<TopicPartition>> owned) {
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String id : ids) {
            List<TopicPartition> held = owned.get(id);
            int generation = held == null ? -1 : GENERATION;
            ByteBuffer userData = null;
            if (held != null && name.endsWith("sticky")) {
                ConsumerPartitionAssignor member = clientAssignor(name);
                ConsumerGroupMetadata metadata = new ConsumerGroupMetadata("benchmark", generation, id, Optional.empty());
                member.onAssignment(new Assignment(held), metadata);
                userData = member.subscriptionUserData(new HashSet<>(topicNames));
            }
            List<TopicPartition> said = held != null && name.equals("cooperative-sticky") ? held : List.of();
            subscriptions.put(id, new Subscription(topicNames, userData, said, generation, Optional.empty()));
        }
        return new GroupSubscription(subscriptions);
    }

    /** The assignor reads the user data where the buffer stands: a second call would find nothing. */
    private static void rewind(Subscription said) {
        if (said.userData() != null)
            said.userData().rewind();
    }

    // ---- server side (KIP-848)

    private static PartitionAssignor serverAssignor(String name) {
        switch (name) {
            case "server-range": return new org.apache.kafka.coordinator.group.assignor.RangeAssignor();
            case "server-uniform": return new UniformAssignor();
            default: throw new IllegalArgumentException("no such assignor: " + name);
        }
    }

    private static void prepareServer(String name, boolean leave, List<String> ids, List<String> topicNames, int[] sizes) {
        List<Uuid> topics = new ArrayList<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (int topic = 0; topic < sizes.length; topic++) {
            Uuid id = new Uuid(1L << 32 | topic, topic + 1);
            topics.add(id);
            counts.put(id, sizes[topic]);
        }
        SubscribedTopicDescriber cluster = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
        Map<String, MemberAssignment> owned = new HashMap<>();
        if (leave) {
            owned.putAll(serverAssignor(name).assign(serverGroup(ids, topics, owned), cluster).members());
            ids.remove(ids.size() / 2);
        }
        GroupSpecImpl group = serverGroup(ids, topics, owned);
        names = () -> {
            GroupAssignment answer = serverAssignor(name).assign(group, cluster);
            if (answer.members().size() != ids.size())
                throw new IllegalStateException("answered " + answer.members().size() + " members of " + ids.size());
            return answer;
        };
    }

    private static GroupSpecImpl serverGroup(List<String> ids, List<Uuid> topics, Map<String, MemberAssignment> owned) {
        Set<Uuid> all = new HashSet<>(topics);
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (String id : ids) {
            MemberAssignment held = owned.get(id);
            Map<Uuid, Set<Integer>> partitions = held == null ? new HashMap<>() : held.partitions();
            partitions.forEach((topic, numbers) -> numbers.forEach(number ->
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(number, id)));
            members.put(id, new MemberSubscriptionAndAssignmentImpl(Optional.empty(), Optional.empty(),
                all, new org.apache.kafka.coordinator.group.modern.Assignment(partitions)));
        }
        return new GroupSpecImpl(members, SubscriptionType.HOMOGENEOUS, owners);
    }
}
