"""Requests to Kafka through librdkafka, for both planning and reading."""
