"""What planning and reading both ask Kafka, through librdkafka."""
