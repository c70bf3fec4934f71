// A copy in transactions with Vert.x's Kafka client, and its admin client.

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.kafka.admin.KafkaAdminClient;
import io.vertx.kafka.admin.NewTopic;
import io.vertx.kafka.admin.OffsetSpec;
import io.vertx.kafka.client.common.TopicPartition;
import io.vertx.kafka.client.consumer.KafkaConsumer;
import io.vertx.kafka.client.producer.KafkaProducer;
import io.vertx.kafka.client.producer.KafkaProducerRecord;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

public class VertxCopy {
    static final String BROKER = System.getenv("BROKER"), NAME = System.getenv("NAME");

    static Map<String, String> config(String... more) {
        Map<String, String> config = new HashMap<>(Map.of("bootstrap.servers", BROKER,
                "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "value.serializer", "org.apache.kafka.common.serialization.StringSerializer",
                "key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
                "value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer",
                "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        for (int at = 0; at < more.length; at += 2) config.put(more[at], more[at + 1]);
        return config;
    }

    static <T> T got(Future<T> future) throws Exception {
        return future.toCompletionStage().toCompletableFuture().get(60, TimeUnit.SECONDS);
    }

    public static void main(String[] args) throws Exception {
        Vertx vertx = Vertx.vertx();
        KafkaAdminClient admin = KafkaAdminClient.create(vertx, config());
        got(admin.createTopics(List.of(new NewTopic(NAME, 3, (short) 1), new NewTopic(NAME + "-copy", 3, (short) 1))));
        System.out.println("made " + got(admin.describeTopics(List.of(NAME))).get(NAME).getPartitions().size());
        KafkaProducer<String, String> producer = KafkaProducer.create(vertx, config());
        for (int number = 0; number < 100; number++)
            got(producer.send(KafkaProducerRecord.create(NAME, "k" + number, "hello " + number)));
        KafkaProducer<String, String> copies = KafkaProducer.create(vertx, config("transactional.id", NAME));
        got(copies.initTransactions());
        KafkaConsumer<String, String> consumer = KafkaConsumer.create(vertx, config("group.id", NAME));
        CountDownLatch copied = new CountDownLatch(100);
        consumer.batchHandler(records -> { });
        consumer.handler(record -> { consumer.pause(); vertx.executeBlocking(() -> {
            got(copies.beginTransaction());
            got(copies.send(KafkaProducerRecord.create(NAME + "-copy", record.key(), record.value())));
            got(copies.commitTransaction());
            copied.countDown();
            return null;
        }).onFailure(Throwable::printStackTrace).onComplete(done -> consumer.resume()); });
        got(consumer.subscribe(NAME));
        if (!copied.await(80, TimeUnit.SECONDS)) throw new IllegalStateException("copied " + (100 - copied.getCount()));
        got(consumer.commit());
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (int partition = 0; partition < 3; partition++) ends.put(new TopicPartition(NAME + "-copy", partition), OffsetSpec.LATEST);
        System.out.println("copied " + (100 - copied.getCount()) + ", ends "
                + got(admin.listOffsets(ends)).values().stream().mapToLong(end -> end.getOffset()).sum());
        System.out.println("group " + got(admin.describeConsumerGroups(List.of(NAME))).get(NAME).getMembers().size());
        got(consumer.close());
        got(admin.deleteConsumerGroups(new ArrayList<>(Set.of(NAME))));
        got(admin.deleteTopics(List.of(NAME)));
        System.out.println("deleted");
        System.exit(0);
    }
}
