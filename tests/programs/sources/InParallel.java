// Records of one partition worked on at the same time, with Confluent's parallel consumer.

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class InParallel {
    public static void main(String[] args) throws Exception {
        String broker = System.getenv("BROKER"), name = System.getenv("NAME");
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", broker), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 300; n++) {
                producer.send(new ProducerRecord<>(name, "k" + n % 20, "hello " + n));
            }
        }
        Map<String, Object> reads = Map.of("bootstrap.servers", broker, "group.id", name, "auto.offset.reset", "earliest",
                "enable.auto.commit", false);
        ParallelStreamProcessor<String, String> processor = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<String, String>builder()
                        .consumer(new KafkaConsumer<>(reads, new StringDeserializer(), new StringDeserializer()))
                        .producer(new KafkaProducer<>(Map.of("bootstrap.servers", broker, "transactional.id", name),
                                new StringSerializer(), new StringSerializer()))
                        .commitMode(ParallelConsumerOptions.CommitMode.PERIODIC_TRANSACTIONAL_PRODUCER)
                        .ordering(ParallelConsumerOptions.ProcessingOrder.KEY).maxConcurrency(10).build());
        processor.subscribe(List.of(name));
        Set<String> seen = ConcurrentHashMap.newKeySet();
        processor.pollAndProduce(context -> {
            seen.add(context.value());
            return new ProducerRecord<>(name + "-copy", context.key(), context.value());
        });
        while (seen.size() < 300) {
            Thread.sleep(50);
        }
        processor.closeDrainFirst();
        try (var consumer = new KafkaConsumer<>(reads, new StringDeserializer(), new StringDeserializer())) {
            var partition = new TopicPartition(name, 0);
            System.out.println("worked on 300, committed " + consumer.committed(Set.of(partition)).get(partition).offset());
        }
        System.exit(0);
    }
}
