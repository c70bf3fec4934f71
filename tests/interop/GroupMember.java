// A Java consumer in a group, for the tests with other clients' members:
// `java -cp 'libs/*' GroupMember.java BOOTSTRAP GROUP TOPIC ASSIGNOR SESSION_TIMEOUT_MS [INSTANCE_ID]`.
// ASSIGNOR is the name of a class, or `consumer` for the protocol of KIP-848.
// One JSON object a line: {"event":"assigned|revoked|lost","generation":g,"partitions":[…]} with all that it now owns,
// and {"event":"records","partition":p,"from":a,"to":b} for what it processed, offsets [a, b), committed after each
// poll. Which generations it led is in Kafka's own log. It closes in order when its standard input ends, and is killed
// to play a crash.

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupMember {
    private static final TreeSet<Integer> OWNED = new TreeSet<>();

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        if (args[3].equals("consumer")) {
            config.put("group.protocol", "consumer"); // KIP-848: the broker says how long a session is
        } else {
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + args[3]);
            config.put("session.timeout.ms", args[4]);
            config.put("heartbeat.interval.ms", "200");
        }
        if (args.length > 5) config.put("group.instance.id", args[5]);
        config.put("metadata.max.age.ms", "2000");
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());

        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        Thread watcher = new Thread(() -> {
            try {
                while (System.in.read() >= 0) { }
            } catch (java.io.IOException closed) {
                // the other end is gone: the same as its end
            }
            consumer.wakeup();
        });
        watcher.setDaemon(true);
        watcher.start();

        try {
            consumer.subscribe(List.of(args[2]), new ConsumerRebalanceListener() {
                public void onPartitionsAssigned(Collection<TopicPartition> added) {
                    for (TopicPartition partition : added) OWNED.add(partition.partition());
                    report("assigned", consumer);
                }

                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    for (TopicPartition partition : revoked) OWNED.remove(partition.partition());
                    report("revoked", consumer);
                }

                public void onPartitionsLost(Collection<TopicPartition> lost) {
                    for (TopicPartition partition : lost) OWNED.remove(partition.partition());
                    report("lost", consumer);
                }
            });
            while (true) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (TopicPartition partition : records.partitions()) {
                    List<ConsumerRecord<byte[], byte[]>> some = records.records(partition);
                    long to = some.get(some.size() - 1).offset() + 1;
                    print("{\"event\":\"records\",\"partition\":" + partition.partition()
                        + ",\"from\":" + some.get(0).offset() + ",\"to\":" + to + "}");
                }
                if (!records.isEmpty()) {
                    try {
                        consumer.commitSync();
                    } catch (CommitFailedException | RebalanceInProgressException rebalancing) {
                        // committed again after the rebalance, or read again by the next owner
                    }
                }
            }
        } catch (WakeupException asked) {
            consumer.close();
            print("{\"event\":\"closed\"}");
        }
    }

    private static void report(String event, KafkaConsumer<byte[], byte[]> consumer) {
        print("{\"event\":\"" + event + "\",\"generation\":" + consumer.groupMetadata().generationId()
            + ",\"partitions\":" + OWNED + "}");
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
