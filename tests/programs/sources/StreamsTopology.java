// A topology of Kafka Streams: a join of a stream with a table, windows, a global table, stores that are asked.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.QueryableStoreTypes;

public class StreamsTopology {
    public static void main(String[] args) throws Exception {
        String broker = System.getenv("BROKER"), name = System.getenv("NAME");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            admin.createTopics(List.of("-clicks", "-users", "-regions", "-out").stream()
                    .map(end -> new NewTopic(name + end, 3, (short) 1)).toList()).all().get(60, TimeUnit.SECONDS);
        }
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", broker), new StringSerializer(), new StringSerializer())) {
            for (int user = 0; user < 10; user++) {
                producer.send(new ProducerRecord<>(name + "-users", "u" + user, "r" + user % 2));
            }
            producer.send(new ProducerRecord<>(name + "-regions", "r0", "north"));
            producer.send(new ProducerRecord<>(name + "-regions", "r1", "south"));
            producer.flush();
            for (int click = 0; click < 200; click++) {
                producer.send(new ProducerRecord<>(name + "-clicks", "u" + click % 10, "page"));
            }
        }
        StreamsBuilder builder = new StreamsBuilder();
        GlobalKTable<String, String> regions = builder.globalTable(name + "-regions");
        KStream<String, String> clicks = builder.stream(name + "-clicks");
        clicks.join(builder.<String, String>table(name + "-users"), (page, region) -> region)
                .join(regions, (user, region) -> region, (region, called) -> called)
                .groupBy((user, called) -> called).count(Materialized.as("by-region"))
                .toStream().mapValues(String::valueOf).to(name + "-out");
        clicks.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofDays(1))).count(Materialized.as("by-day"));
        Properties config = new Properties();
        config.putAll(Map.of("application.id", name, "bootstrap.servers", broker, "state.dir", "state", "num.stream.threads", "2",
                "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class,
                "commit.interval.ms", "500", "processing.guarantee", "exactly_once_v2", "num.standby.replicas", "1",
                "max.task.idle.ms", "2000"));
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        long deadline = System.currentTimeMillis() + 80_000;
        while (System.currentTimeMillis() < deadline) {
            Thread.sleep(200);
            try {
                var store = streams.store(StoreQueryParameters.fromNameAndType("by-region", QueryableStoreTypes.<String, Long>keyValueStore()));
                if (Long.valueOf(100).equals(store.get("north")) && Long.valueOf(100).equals(store.get("south"))) {
                    System.out.println("joined 200");
                    System.out.println("left " + streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(20))));
                    System.exit(0);
                }
            } catch (org.apache.kafka.streams.errors.InvalidStateStoreException notYet) {
                continue;
            }
        }
        System.exit(1);
    }
}
