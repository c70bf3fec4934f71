// A pipeline of Hazelcast's that copies exactly once: its members prepare transactions, and commit them after a snapshot.

import com.hazelcast.config.Config;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.jet.Job;
import com.hazelcast.jet.config.JobConfig;
import com.hazelcast.jet.config.ProcessingGuarantee;
import com.hazelcast.jet.kafka.KafkaSinks;
import com.hazelcast.jet.kafka.KafkaSources;
import com.hazelcast.jet.pipeline.Pipeline;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class HazelcastJet {
    static final String BROKER = System.getenv("BROKER"), NAME = System.getenv("NAME");

    static Properties config(String... more) {
        Properties config = new Properties();
        config.put("bootstrap.servers", BROKER);
        for (String each : List.of("key", "value")) {
            config.put(each + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            config.put(each + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        config.put("auto.offset.reset", "earliest");
        for (int at = 0; at < more.length; at += 2) config.put(more[at], more[at + 1]);
        return config;
    }

    static void write(int from, int to) {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config())) {
            for (int number = from; number < to; number++) producer.send(new ProducerRecord<>(NAME, "k" + number, "v" + number));
        }
    }

    public static void main(String[] args) throws Exception {
        write(0, 50);
        Config config = new Config();
        config.getJetConfig().setEnabled(true);
        config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
        config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
        HazelcastInstance member = Hazelcast.newHazelcastInstance(config);
        Pipeline pipeline = Pipeline.create();
        pipeline.readFrom(KafkaSources.<String, String>kafka(config("group.id", NAME), NAME)).withoutTimestamps()
                .writeTo(KafkaSinks.<Map.Entry<String, String>>kafka(config()).topic(NAME + "-copy").exactlyOnce(true)
                        .extractKeyFn(each -> each.getKey()).extractValueFn(each -> each.getValue()).build());
        Job job = member.getJet().newJob(pipeline, new JobConfig().setProcessingGuarantee(ProcessingGuarantee.EXACTLY_ONCE)
                .setSnapshotIntervalMillis(500));
        Set<String> seen = new HashSet<>();
        int records = 0;
        boolean isRestarted = false;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(config("group.id", NAME + "-check", "isolation.level", "read_committed"))) {
            consumer.subscribe(List.of(NAME + "-copy"));
            for (long end = System.currentTimeMillis() + 75_000; seen.size() < 100 && System.currentTimeMillis() < end;) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                    seen.add(each.value());
                    records++;
                }
                if (seen.size() >= 50 && !isRestarted) {
                    isRestarted = true;
                    job.restart();
                    write(50, 100);
                }
            }
        }
        System.out.println("copied " + seen.size() + " in " + records + " records");
        member.getLifecycleService().terminate();
        System.exit(0);
    }
}
