// A transactional flow and committable sources, with Pekko's connectors.

import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.kafka.CommitterSettings;
import org.apache.pekko.kafka.ConsumerSettings;
import org.apache.pekko.kafka.ProducerMessage;
import org.apache.pekko.kafka.ProducerSettings;
import org.apache.pekko.kafka.Subscriptions;
import org.apache.pekko.kafka.javadsl.Committer;
import org.apache.pekko.kafka.javadsl.Consumer;
import org.apache.pekko.kafka.javadsl.Producer;
import org.apache.pekko.kafka.javadsl.Transactional;
import org.apache.pekko.stream.javadsl.Source;

public class PekkoCopy {
    public static void main(String[] args) throws Exception {
        String broker = System.getenv("BROKER"), name = System.getenv("NAME");
        ActorSystem system = ActorSystem.create("copy");
        ProducerSettings<String, String> produces =
                ProducerSettings.create(system, new StringSerializer(), new StringSerializer()).withBootstrapServers(broker);
        ConsumerSettings<String, String> consumes =
                ConsumerSettings.create(system, new StringDeserializer(), new StringDeserializer()).withBootstrapServers(broker)
                        .withProperty(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        Source.from(IntStream.range(0, 100).boxed().toList()).map(n -> new ProducerRecord<>(name, "k" + n, "hello " + n))
                .runWith(Producer.plainSink(produces), system).toCompletableFuture().get(60, TimeUnit.SECONDS);
        Transactional.source(consumes.withGroupId(name), Subscriptions.topics(name))
                .map(each -> ProducerMessage.single(
                        new ProducerRecord<>(name + "-copy", each.record().key(), each.record().value()), each.partitionOffset()))
                .to(Transactional.sink(produces, name)).run(system);
        Consumer.committableSource(consumes.withGroupId(name + "-check")
                                .withProperty(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed"), Subscriptions.topics(name + "-copy"))
                .take(100).map(each -> each.committableOffset()).toMat(Committer.sink(CommitterSettings.create(system)), (a, b) -> b)
                .run(system).toCompletableFuture().get(80, TimeUnit.SECONDS);
        System.out.println("copied 100");
        system.terminate();
        System.exit(0);
    }
}
