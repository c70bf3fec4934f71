"""How fast a coordinator answers, beside Apache Kafka and kfake."""
