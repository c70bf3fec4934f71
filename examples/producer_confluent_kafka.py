"""A confluent-kafka producer that sends each batch to the broker with room for it.

python examples/producer_confluent_kafka.py flights --bootstrap-servers localhost:9092 --records 100000
"""

import argparse
from collections import Counter

from confluent_kafka import KafkaException

from loadwise import Dispatcher, confluent_producer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--records", type=int, default=10_000)
    given = options.parse_args()

    found = Counter()

    def delivered(error, message):
        if error is not None:
            raise KafkaException(error)
        found[message.partition()] += 1

    # weights say what matters; the configuration is librdkafka's own: credentials go here too.
    dispatcher = Dispatcher(weights={"latency": 2.0, "in_flight": 1.0})
    producer = confluent_producer({"bootstrap.servers": given.bootstrap_servers}, dispatcher=dispatcher)
    for number in range(given.records):
        producer.produce(given.topic, b"record %d" % number, on_delivery=delivered)
        producer.poll(0)
    producer.flush()
    partitions = producer.list_topics(given.topic).topics[given.topic].partitions
    brokers = Counter()
    for partition, count in found.items():
        brokers[partitions[partition].leader] += count
    for broker, count in sorted(brokers.items()):
        print(f"broker {broker}: {count:,} records")


if __name__ == "__main__":
    main()
