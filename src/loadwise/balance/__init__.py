"""``loadwise balance``: a plan that evens out the load of a cluster's brokers, for Kafka's own tools to execute."""
