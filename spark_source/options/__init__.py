"""Parse and check a query's options and build client configurations; no request to Kafka."""
