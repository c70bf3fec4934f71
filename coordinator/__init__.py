"""A group coordinator that real Kafka clients connect to, for tests and demos."""
