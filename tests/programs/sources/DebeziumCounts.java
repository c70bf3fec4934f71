// Debezium's engine, which keeps a connector's offsets and a database's schema history in topics. The connector counts.

import io.debezium.config.Configuration;
import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.relational.history.HistoryRecordComparator;
import io.debezium.relational.history.SchemaHistoryListener;
import io.debezium.storage.kafka.history.KafkaSchemaHistory;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

public class DebeziumCounts {
    static final String BROKER = System.getenv("BROKER"), NAME = System.getenv("NAME");

    public static class Counter extends SourceConnector {
        public void start(Map<String, String> config) { }
        public Class<? extends Task> taskClass() { return CounterTask.class; }
        public List<Map<String, String>> taskConfigs(int most) { return List.of(Map.of()); }
        public void stop() { }
        public ConfigDef config() { return new ConfigDef(); }
        public String version() { return "1"; }
    }

    public static class CounterTask extends SourceTask {
        private static final Map<String, String> COUNTER = Map.of("counter", "c");
        private long next;

        public void start(Map<String, String> config) {
            Map<String, Object> offset = context.offsetStorageReader().offset(COUNTER);
            next = offset == null ? 0 : (Long) offset.get("at");
        }
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(10);
            next++;
            return List.of(new SourceRecord(COUNTER, Map.of("at", next), NAME, Schema.INT64_SCHEMA, next));
        }
        public void stop() { }
        public String version() { return "1"; }
    }

    /** The first value that a run of the engine sees; it ends after ten. */
    static long run() throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of("name", NAME, "connector.class", Counter.class.getName(), "bootstrap.servers", BROKER,
                "offset.storage", "org.apache.kafka.connect.storage.KafkaOffsetBackingStore", "offset.storage.topic", NAME + "-offsets",
                "offset.storage.partitions", "3", "offset.storage.replication.factor", "1", "offset.flush.interval.ms", "0"));
        AtomicReference<Long> first = new AtomicReference<>();
        CountDownLatch seen = new CountDownLatch(10);
        DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine = DebeziumEngine.create(Connect.class).using(config)
                .notifying(event -> {
                    first.compareAndSet(null, (Long) event.value().value());
                    seen.countDown();
                }).build();
        ExecutorService runs = Executors.newSingleThreadExecutor();
        runs.execute(engine);
        if (!seen.await(60, TimeUnit.SECONDS)) throw new IllegalStateException("the engine saw nothing");
        engine.close();
        runs.shutdown();
        runs.awaitTermination(30, TimeUnit.SECONDS);
        return first.get();
    }

    static KafkaSchemaHistory history() {
        KafkaSchemaHistory history = new KafkaSchemaHistory();
        history.configure(Configuration.from(Map.of(KafkaSchemaHistory.BOOTSTRAP_SERVERS.name(), BROKER, KafkaSchemaHistory.TOPIC.name(),
                NAME + "-history", KafkaSchemaHistory.RECOVERY_POLL_INTERVAL_MS.name(), "200")), HistoryRecordComparator.INSTANCE,
                SchemaHistoryListener.NOOP, true);
        history.start();
        return history;
    }

    public static void main(String[] args) throws Exception {
        long before = run();
        System.out.println("began at " + before + ", went on later: " + (run() > before + 5));
        KafkaSchemaHistory history = history();
        System.out.println("there already: " + history.storageExists() + " " + history.exists());
        history.initializeStorage();
        history.record(Map.of("server", "s"), Map.of("at", 1), "db", "CREATE TABLE t (n INT)");
        history.stop();
        KafkaSchemaHistory again = history();
        System.out.println("there later: " + again.storageExists() + " " + again.exists());
        again.stop();
        System.exit(0);
    }
}
