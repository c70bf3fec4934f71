"""The Kafka wire protocol: frames, requests and responses, and the consumer protocol inside them."""
