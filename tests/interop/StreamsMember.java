// A Kafka Streams application that counts words, as a member of a streams group (KIP-1071):
// `java -cp 'libs/*' StreamsMember.java BOOTSTRAP APPLICATION_ID INPUT OUTPUT STATE_FOLDER GUARANTEE`.
// It reads lines of words, repartitions by the word, keeps the counts in a store with a changelog, and writes each new
// count to OUTPUT. It prints "state NAME" when its state changes, and "tasks ACTIVE STANDBY" when its tasks change,
// each as a list like 0_0,1_2 or "-". It leaves in order when its standard input ends.

import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

public class StreamsMember {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("application.id", args[1]);
        config.put("state.dir", args[4]);
        config.put("processing.guarantee", args[5]);
        config.put("group.protocol", "streams");
        config.put("commit.interval.ms", "100");
        config.put("statestore.cache.max.bytes", "0");
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        config.put("auto.offset.reset", "earliest");

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(args[2])
            .flatMapValues(line -> List.of(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(Materialized.as("counts"))
            .toStream()
            .to(args[3], Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams streams = new KafkaStreams(builder.build(config), config);
        streams.setStateListener((state, before) -> System.out.println("state " + state));
        Thread watcher = new Thread(() -> {
            String last = "";
            while (true) {
                String tasks = streams.state() == KafkaStreams.State.RUNNING
                    ? "tasks " + ids(streams, true) + " " + ids(streams, false) : last;
                if (!tasks.equals(last)) System.out.println(tasks);
                last = tasks;
                try {
                    Thread.sleep(50); // between two looks
                } catch (InterruptedException ended) {
                    return;
                }
            }
        });
        watcher.setDaemon(true);
        streams.start();
        watcher.start();
        while (System.in.read() >= 0) { }
        streams.close();
    }

    private static String ids(KafkaStreams streams, boolean active) {
        Stream<TaskMetadata> tasks = streams.metadataForLocalThreads().stream()
            .flatMap((ThreadMetadata thread) -> (active ? thread.activeTasks() : thread.standbyTasks()).stream());
        String list = tasks.map(task -> task.taskId().toString()).sorted().collect(Collectors.joining(","));
        return list.isEmpty() ? "-" : list;
    }
}
