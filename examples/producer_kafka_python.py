"""A kafka-python producer that sends each batch to the broker with room for it.

python examples/producer_kafka_python.py flights --bootstrap-servers localhost:9092 --records 100000

It prints how many records each broker got, and how long acknowledgements took.
"""

import argparse
import time
from collections import Counter

from loadwise import Dispatcher, kafka_python_producer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--records", type=int, default=10_000)
    given = options.parse_args()

    taken_s, records = [], Counter()

    def acknowledged(began_s, metadata):
        taken_s.append(time.monotonic() - began_s)
        records[metadata.partition] += 1

    # weights say what matters; all other arguments are kafka-python's own: credentials go here too.
    dispatcher = Dispatcher(weights={"latency": 2.0, "in_flight": 1.0})
    producer = kafka_python_producer(dispatcher=dispatcher, bootstrap_servers=given.bootstrap_servers)
    with producer:
        for number in range(given.records):
            producer.send(given.topic, b"record %d" % number).add_callback(acknowledged, time.monotonic())
        producer.flush()
        leaders = producer.config["partitioner"].leaders(given.topic)
    brokers = Counter()
    for number, count in records.items():
        brokers[leaders[number]] += count
    for broker, count in sorted(brokers.items()):
        print(f"broker {broker}: {count:,} records")
    taken_s.sort()
    print(
        f"acknowledged after {taken_s[len(taken_s) // 2] * 1000:.1f} ms (median), {taken_s[-1] * 1000:.1f} ms at most"
    )


if __name__ == "__main__":
    main()
