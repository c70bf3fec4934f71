"""Kafka's own message definitions, in its JSON, for the messages that kafka-python does not know."""
