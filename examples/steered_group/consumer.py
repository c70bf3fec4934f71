"""A confluent-kafka consumer in a group that `loadwise steer` balances by load; Consumer.java may be in the same group.

python examples/steered_group/consumer.py clicks --bootstrap-servers localhost:9092
loadwise steer --bootstrap-servers localhost:9092 --group billing
"""

import argparse
import signal
import threading
import time

from confluent_kafka import Consumer, KafkaException


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="billing")
    options.add_argument("--work-ms", type=float, default=2.0, help="how long a record takes")
    given = options.parse_args()

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    consumer = Consumer(
        {
            "bootstrap.servers": given.bootstrap_servers,
            "group.id": given.group,
            "group.protocol": "consumer",  # and no group.remote.assignor
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,  # the command learns sooner what a member can process
        }
    )

    def changed(_, __):
        print("assigned", sorted(each.partition for each in consumer.assignment()), flush=True)

    consumer.subscribe([given.topic], on_assign=changed)
    records = 0
    try:
        while not stop.is_set():
            record = consumer.poll(0.5)
            if record is None:
                continue
            if record.error():
                raise KafkaException(record.error())
            time.sleep(given.work_ms / 1000)  # your work
            records += 1
    finally:
        consumer.close()
    print(records, "records", flush=True)


if __name__ == "__main__":
    main()
