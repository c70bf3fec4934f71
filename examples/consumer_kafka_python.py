"""A kafka-python consumer in a load-aware group. Start several, of either client, and watch them share the lag.

python examples/consumer_kafka_python.py flights --bootstrap-servers localhost:9092 --capacity 2
"""

import argparse
import sys
import time

from kafka import ConsumerRebalanceListener

from loadwise import kafka_python_consumer
from loadwise.assignor.strategy import strategies


class Announce(ConsumerRebalanceListener):
    """Prints the partitions that the consumer gains and loses."""

    def on_partitions_assigned(self, assigned):
        print("assigned", sorted(tuple(partition) for partition in assigned))

    def on_partitions_revoked(self, revoked):
        print("revoked", sorted(tuple(partition) for partition in revoked))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example")
    options.add_argument("--assignor", default="weighted", choices=strategies())
    options.add_argument("--capacity", type=float, default=1.0, help="what this consumer can do, next to the others")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    # Everything but assignor and capacity is kafka-python's own: credentials go here too.
    consumer = kafka_python_consumer(
        group_id=given.group,
        bootstrap_servers=given.bootstrap_servers,
        auto_offset_reset="earliest",
        assignor=given.assignor,
        capacity=given.capacity,
    )
    records = 0
    with consumer:
        consumer.subscribe([given.topic], listener=Announce())
        end = time.monotonic() + given.seconds
        while records < given.records and time.monotonic() < end:
            for batch in consumer.poll(timeout_ms=500).values():
                records += len(batch)
        decisions = consumer.rebalances
        print(f"{records} records; led {decisions.led} rebalances, {decisions.fallbacks} of them without load")


if __name__ == "__main__":
    main()
