"""How fast our assignors are beside Kafka's own: ``python -m benchmarks.speed``."""
