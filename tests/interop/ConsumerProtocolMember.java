// A Java consumer of KIP-848 (group.protocol=consumer):
// `java -cp 'libs/*' ConsumerProtocolMember.java BOOTSTRAP GROUP names|regex TOPIC_OR_REGEX [ASSIGNOR [SPEED]]`.
// ASSIGNOR may be empty; SPEED is how many records a second it processes.
// One line each time its partitions change, "owns t-0 t-1 …"; it reads from the start, commits, and says "read N" for
// all records so far. It leaves in order when its standard input ends.

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class ConsumerProtocolMember {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("group.protocol", "consumer");
        double speed = args.length > 5 ? Double.parseDouble(args[5]) : Double.POSITIVE_INFINITY;
        config.put("max.poll.records", args.length > 5 ? "50" : "500");
        if (args.length > 4 && !args[4].isEmpty()) config.put("group.remote.assignor", args[4]);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("metadata.max.age.ms", "1000");
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

        String owned = "";
        long read = 0;
        try {
            if (args[2].equals("regex")) consumer.subscribe(new SubscriptionPattern(args[3]));
            else consumer.subscribe(List.of(args[3]));
            while (true) {
                int count = consumer.poll(Duration.ofMillis(100)).count();
                TreeSet<String> names = new TreeSet<>();
                for (TopicPartition partition : consumer.assignment()) names.add(partition.toString());
                String now = String.join(" ", names);
                if (!now.equals(owned)) System.out.println(("owns " + now).strip());
                owned = now;
                if (count > 0) {
                    Thread.sleep((long) (1000 * count / speed)); // its work
                    consumer.commitSync();
                    System.out.println("read " + (read += count));
                }
            }
        } catch (WakeupException asked) {
            consumer.close();
        }
    }
}
