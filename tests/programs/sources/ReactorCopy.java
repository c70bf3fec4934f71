// A copy in transactions, exactly once, with Reactor Kafka.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import reactor.core.publisher.Flux;
import reactor.kafka.receiver.KafkaReceiver;
import reactor.kafka.receiver.ReceiverOptions;
import reactor.kafka.sender.KafkaSender;
import reactor.kafka.sender.SenderOptions;
import reactor.kafka.sender.SenderRecord;

public class ReactorCopy {
    static final String BROKER = System.getenv("BROKER"), NAME = System.getenv("NAME");

    static SenderOptions<String, String> sends() {
        return SenderOptions.<String, String>create(Map.of("bootstrap.servers", BROKER))
                .withKeySerializer(new StringSerializer()).withValueSerializer(new StringSerializer());
    }

    static ReceiverOptions<String, String> reads(String group, String topic) {
        return ReceiverOptions.<String, String>create(Map.of("bootstrap.servers", BROKER, "group.id", group,
                        "auto.offset.reset", "earliest", "isolation.level", "read_committed"))
                .withKeyDeserializer(new StringDeserializer()).withValueDeserializer(new StringDeserializer())
                .subscription(List.of(topic));
    }

    public static void main(String[] args) {
        KafkaSender.create(sends()).send(Flux.range(0, 100)
                .map(n -> SenderRecord.create(new ProducerRecord<>(NAME, "k" + n, "hello " + n), n))).blockLast();
        KafkaSender<String, String> copies = KafkaSender.create(sends().producerProperty("transactional.id", NAME));
        KafkaReceiver.create(reads(NAME, NAME)).receiveExactlyOnce(copies.transactionManager())
                .concatMap(batch -> copies.send(batch.map(record ->
                                SenderRecord.create(new ProducerRecord<>(NAME + "-copy", record.key(), record.value()), 0)))
                        .concatWith(copies.transactionManager().commit()))
                .onErrorResume(e -> copies.transactionManager().abort().then(reactor.core.publisher.Mono.error(e)))
                .subscribe(done -> { }, e -> { e.printStackTrace(); System.exit(1); });
        long read = KafkaReceiver.create(reads(NAME + "-check", NAME + "-copy")).receive()
                .doOnNext(record -> record.receiverOffset().acknowledge()).take(100).count().block(Duration.ofSeconds(80));
        System.out.println("copied " + read);
        System.exit(0);
    }
}
