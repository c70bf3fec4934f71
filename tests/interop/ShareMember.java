// A Java share consumer (KIP-932): `java -cp 'libs/*' ShareMember.java BOOTSTRAP GROUP TOPIC MODE [MAX_RECORDS]`.
// Each record's value tells what becomes of it: "accept …", "release …" (accepted at its second delivery),
// "reject …", "renew …" (its lock is renewed once, then it is accepted), "keep …" (it is kept, and the process waits to
// be killed or closed). One line a record, "got VALUE COUNT"; "ack ERROR" for what the broker answered to a commit.
// It leaves in order when its standard input ends.

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ShareMember {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("group.id", args[1]);
        config.put("share.acknowledgement.mode", args[3].equals("implicit") ? "implicit" : "explicit");
        if (args[3].equals("strict")) config.put("share.acquire.mode", "record_limit");
        if (args.length > 4) config.put("max.poll.records", args[4]);
        config.put("metadata.max.age.ms", "1000");
        config.put("key.deserializer", StringDeserializer.class.getName());
        config.put("value.deserializer", StringDeserializer.class.getName());

        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(config);
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

        Set<String> renewed = new HashSet<>();
        try {
            consumer.subscribe(List.of(args[2]));
            System.out.println("ready");
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                boolean keeps = false;
                for (ConsumerRecord<String, String> record : records) {
                    short count = record.deliveryCount().orElse((short) 0);
                    System.out.println("got " + record.value() + " " + count);
                    if (args[3].equals("implicit")) continue;
                    switch (record.value().split(" ")[0]) {
                        case "accept" -> consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                        case "release" -> consumer.acknowledge(record, count > 1 ? AcknowledgeType.ACCEPT : AcknowledgeType.RELEASE);
                        case "again" -> consumer.acknowledge(record, AcknowledgeType.RELEASE);
                        case "reject" -> consumer.acknowledge(record, AcknowledgeType.REJECT);
                        case "renew" -> consumer.acknowledge(record,
                            renewed.add(record.value()) ? AcknowledgeType.RENEW : AcknowledgeType.ACCEPT);
                        default -> keeps = true;
                    }
                }
                if (keeps) while (true) Thread.sleep(1000);
                if (records.isEmpty()) continue;
                for (Map.Entry<TopicIdPartition, Optional<KafkaException>> each : consumer.commitSync().entrySet())
                    System.out.println("ack " + each.getValue().map(error -> error.getClass().getSimpleName()).orElse("none"));
            }
        } catch (WakeupException asked) {
            consumer.close();
        }
    }
}
