// A Java consumer in a group that `loadwise steer` balances by load; consumer.py may be in the same group.
//
// java -cp "$KAFKA_HOME/libs/*" examples/steered_group/Consumer.java localhost:9092 billing clicks
// loadwise steer --bootstrap-servers localhost:9092 --group billing

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Consumer {
    private static final long WORK_MS = 2; // how long a record takes

    public static void main(String[] arguments) throws InterruptedException {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("group.id", arguments[1]);
        config.put("group.protocol", "consumer"); // and no group.remote.assignor
        config.put("auto.offset.reset", "earliest");
        config.put("auto.commit.interval.ms", "1000"); // the command learns sooner what a member can process
        config.put("max.poll.records", "50");
        config.put("key.deserializer", ByteArrayDeserializer.class.getName());
        config.put("value.deserializer", ByteArrayDeserializer.class.getName());
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }));
        long records = 0;
        try (consumer) {
            consumer.subscribe(List.of(arguments[2]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> added) {
                    System.out.println("assigned " + consumer.assignment());
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> lost) {}
            });
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    Thread.sleep(WORK_MS); // your work
                    records++;
                }
            }
        } catch (WakeupException ended) {
            System.out.println(records + " records");
        }
    }
}
