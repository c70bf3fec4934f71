// What Java's Admin, transactional producer and reader of committed records ask of a broker, a line for each call with what came
// of it: `Administrator BOOTSTRAP TOPIC`. The same lines are to come from any broker.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Administrator {
    private static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        String topic = args[1];
        TopicPartition first = new TopicPartition(topic, 0);
        ConfigResource config = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = Admin.create(config())) {
            tell("transactions", () -> transactions(topic));
            tell("read_committed", () -> read(topic, "read_committed", 2));
            tell("read_uncommitted", () -> read(topic, "read_uncommitted", 3));
            for (String codec : List.of("gzip", "snappy", "lz4", "zstd"))
                tell("packed with " + codec, () -> packed(admin, topic + "-" + codec, codec));
            tell("describeProducers", () -> admin.describeProducers(List.of(first)).all().get().size());
            tell("describeTransactions", () -> admin.describeTransactions(List.of(topic)).all().get().get(topic).state());
            tell("listTransactions", () -> admin.listTransactions().all().get().stream()
                .filter(each -> each.transactionalId().equals(topic)).map(each -> each.state()).toList());
            tell("fenceProducers", () -> admin.fenceProducers(List.of(topic)).all().get());
            tell("abortTransaction", () ->
                admin.abortTransaction(new AbortTransactionSpec(first, 99_999, (short) 0, -1)).all().get());
            tell("describeConfigs", () -> admin.describeConfigs(List.of(config)).all().get().get(config).entries().size());
            tell("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(config, List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "7777777"), AlterConfigOp.OpType.SET)))).all().get());
            tell("a config that is none", () -> admin.incrementalAlterConfigs(Map.of(config, List.of(
                new AlterConfigOp(new ConfigEntry("no.such", "7"), AlterConfigOp.OpType.SET)))).all().get());
            tell("deleteRecords", () ->
                admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(1))).lowWatermarks().get(first).get().lowWatermark());
            for (OffsetSpec each : List.of(OffsetSpec.latest(), OffsetSpec.earliest(), OffsetSpec.maxTimestamp(),
                    OffsetSpec.forTimestamp(1), OffsetSpec.earliestLocal(), OffsetSpec.latestTiered()))
                tell("listOffsets " + each.getClass().getSimpleName(), () ->
                    admin.listOffsets(Map.of(first, each)).all().get().get(first).offset());
            tell("listOffsets committed", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get().get(first).offset());
            tell("describeTopics", () ->
                admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size());
            tell("describeLogDirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).size());
            tell("electLeaders", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).partitions().get()
                .get(first).map(error -> error.getClass().getSimpleName()));
            tell("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
                Map.of(first, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get());
            tell("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get().size());
            tell("describeFeatures", () ->
                admin.describeFeatures().featureMetadata().get().finalizedFeatures().get("transaction.version"));
            tell("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo().get().leaderId());
            tell("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get() != null);
            tell("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values().get());
            tell("committed", () -> admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().get(first).offset());
        }
    }

    private static Properties config() {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        return config;
    }

    private static void tell(String what, Callable<Object> call) throws Exception {
        String outcome;
        try {
            outcome = String.valueOf(call.call());
        } catch (ExecutionException failed) {
            outcome = failed.getCause().getClass().getSimpleName();
        }
        System.out.println(what + ": " + outcome);
    }

    private static KafkaProducer<String, String> producer(String transactionalId) {
        Properties config = config();
        if (transactionalId != null) config.put("transactional.id", transactionalId);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    private static Object transactions(String topic) throws Exception {
        try (KafkaProducer<String, String> producer = producer(topic)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "a")).get();
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1)), new ConsumerGroupMetadata(topic));
            producer.commitTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "aborted")).get();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "k", "b")).get();
            producer.commitTransaction();
        }
        return "ended";
    }

    private static List<String> read(String topic, String isolation, int count) {
        Properties config = config();
        config.put("isolation.level", isolation);
        config.put("auto.offset.reset", "earliest");
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            while (values.size() < count)
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
        }
        return values;
    }

    private static Object packed(Admin admin, String topic, String codec) throws Exception {
        NewTopic fresh = new NewTopic(topic, 1, (short) 1).configs(Map.of("compression.type", codec));
        admin.createTopics(List.of(fresh)).all().get();
        try (KafkaProducer<String, String> producer = producer(null)) {
            for (int each = 0; each < 50; each++)
                producer.send(new ProducerRecord<>(topic, 0, "k", "v".repeat(3000) + each));
        }
        return read(topic, "read_uncommitted", 50).get(49).substring(3000);
    }
}
