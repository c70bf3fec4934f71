import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.KafkaMessageListenerContainer;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;

/** A listener container of Spring Kafka's, and a template that writes in a transaction. */
public class SpringListener {
    public static void main(String[] arguments) throws Exception {
        String broker = System.getenv("BROKER");
        String name = System.getenv("NAME");
        Map<String, Object> producing = Map.of("bootstrap.servers", broker);
        var producers = new DefaultKafkaProducerFactory<>(producing, new StringSerializer(), new StringSerializer());
        producers.setTransactionIdPrefix(name);
        var template = new KafkaTemplate<>(producers);
        Map<String, Object> consuming =
            Map.of("bootstrap.servers", broker, "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        var consumers = new DefaultKafkaConsumerFactory<>(consuming, new StringDeserializer(), new StringDeserializer());
        var properties = new ContainerProperties(name, name + "-out");
        properties.setGroupId(name);
        properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers));
        CountDownLatch left = new CountDownLatch(2);
        properties.setMessageListener((MessageListener<String, String>) record -> {
            System.out.println("read " + record.value());
            if (record.topic().equals(name)) {
                template.send(name + "-out", "committed");
            }
            left.countDown();
        });
        var container = new KafkaMessageListenerContainer<>(consumers, properties);
        template.executeInTransaction(each -> each.send(name, "k", "hello"));
        container.start();
        boolean came = left.await(60, TimeUnit.SECONDS);
        container.stop();
        producers.destroy();
        System.exit(came ? 0 : 1);
    }
}
