// Log lines into a topic, by Log4j's Kafka appender.

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

public class Log4jAppender {
    public static void main(String[] args) {
        Logger log = LogManager.getLogger("program");
        log.warn("hello from a log");
        LogManager.shutdown();
        System.out.println("logged");
    }
}
