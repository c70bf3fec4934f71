// A Java producer and administrator for the interop tests; the same commands and lines as franz-go/main.go:
// `Client produce BOOTSTRAP TOPIC FIRST LAST` and `Client admin BOOTSTRAP GROUP TOPIC`.

import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[1]);
        if (args[0].equals("produce")) produce(config, args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]));
        else administrate(config, args[2], args[3]);
    }

    private static void produce(Properties config, String topic, int first, int last) throws Exception {
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int each = first; each < last - 1; each++)
                producer.send(new ProducerRecord<>(topic, "" + each, "" + each));
            producer.send(new ProducerRecord<>(topic, "" + (last - 1), "" + (last - 1))).get();
            producer.flush();
        }
        System.out.println("{\"event\":\"produced\",\"count\":" + (last - first) + "}");
    }

    private static void administrate(Properties config, String group, String topic) throws Exception {
        try (Admin admin = Admin.create(config)) {
            String fresh = topic + "-fresh";
            // Partitions and replicas: the broker's default, which Java sends as -1 beside an empty list.
            admin.createTopics(List.of(new NewTopic(fresh, Optional.of(3), Optional.empty()))).all().get();
            String again = failure(admin.createTopics(List.of(new NewTopic(fresh, 3, (short) 1))).all());
            // Kafka's brokers learn of a topic a moment after the answer.
            while (failure(admin.describeTopics(List.of(fresh)).allTopicNames()).equals("UnknownTopicOrPartitionException"))
                Thread.sleep(50);
            int partitions = admin.describeTopics(List.of(fresh)).allTopicNames().get().get(fresh).partitions().size();
            boolean listed = admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group));
            ConsumerGroupDescription described =
                admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            long committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get()
                .values().stream().mapToLong(each -> each.offset()).sum();
            admin.deleteConsumerGroups(List.of(group)).all().get();
            String missing = failure(admin.deleteConsumerGroups(List.of(group)).all());
            admin.deleteTopics(List.of(fresh)).all().get();
            System.out.println("{\"event\":\"admin\",\"again\":\"" + again + "\",\"partitions\":" + partitions
                + ",\"listed\":" + listed + ",\"state\":\"" + described.groupState() + "\",\"type\":\""
                + described.type() + "\",\"committed\":" + committed + ",\"missing\":\"" + missing + "\"}");
        }
    }

    private static String failure(KafkaFuture<?> future) throws InterruptedException {
        try {
            future.get();
            return "none";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        }
    }
}
