"""A confluent-kafka consumer in a group that the broker's side assigns (KIP-848), with nothing of loadwise in it.

Against loadwise's coordinator, ``weighted`` shares the lag; Apache Kafka knows ``uniform`` and ``range``, and refuses
a consumer that asks for another one.

python examples/consumer_of_brokers_assignor.py flights --bootstrap-servers localhost:9092 --assignor weighted
"""

import argparse
import sys
import time

from confluent_kafka import Consumer, KafkaException


def announce(what):
    """Prints the partitions that the consumer gains and loses."""
    return lambda _, partitions: print(what, sorted((each.topic, each.partition) for each in partitions))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example-consumer")
    options.add_argument("--assignor", default="uniform", help="one of the broker's")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap_servers,
            "group.id": given.group,
            "group.protocol": "consumer",
            "group.remote.assignor": given.assignor,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([given.topic], on_assign=announce("assigned"), on_revoke=announce("revoked"))
    records = 0
    try:
        end = time.monotonic() + given.seconds
        while records < given.records and time.monotonic() < end:
            record = consumer.poll(0.5)
            if record is None:
                continue
            if record.error():
                raise KafkaException(record.error())
            records += 1
    finally:
        consumer.close()
    print(f"{records} records")


if __name__ == "__main__":
    main()
