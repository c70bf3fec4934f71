"""How fast our assignors are beside Kafka's own, kafka-python's and aiokafka's: ``python -m benchmarks.speed``."""
