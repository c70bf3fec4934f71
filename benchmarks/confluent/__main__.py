"""How fast `confluent_consumer` and the stock ``Consumer`` read: ``python -m benchmarks.confluent``.

Each run is a new consumer in a new group that reads the same topic from its beginning to its end, by ``consume(500)``
or by ``poll()``, and looks at each record's error and value. The clock runs from the first record to the last. The
consumers alternate for several runs, and the median counts. The process's CPU time is reported too, because it varies
less on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from loadwise import confluent_consumer
from loadwise.coordinator import Coordinator

PARTITIONS = 12
VALUE = b"x" * 100


def main() -> None:
    """Run what the command line asks for, and print a table."""
    options = argparse.ArgumentParser(prog="benchmarks.confluent", description=__doc__)
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=5, help="of each consumer, by turns")
    options.add_argument("--bootstrap-servers", help="default: a coordinator of loadwise's own")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both consumers")
    given = options.parse_args()
    settings = dict(each.split("=", 1) for each in given.set)
    with _cluster(given.bootstrap_servers) as address:
        topic = f"benchmark-{uuid.uuid4().hex[:8]}"
        _fill(address, topic, given.records)
        makers: dict[str, Callable[[dict[str, Any]], Any]] = {"stock": Consumer, "loadwise": confluent_consumer}
        print(
            f"{given.records:,} records of {len(VALUE)} bytes in {PARTITIONS} partitions, middle of {given.runs} runs"
        )
        for way in (_by_batch, _one_by_one):
            runs: dict[str, list[tuple[float, float]]] = {name: [] for name in makers}
            for _ in range(given.runs):
                for name, make in makers.items():
                    config = {
                        "bootstrap.servers": address,
                        "group.id": uuid.uuid4().hex,
                        "auto.offset.reset": "earliest",
                        **settings,
                    }
                    runs[name].append(_run(make(config), topic, given.records, way))
            for what, unit, number in (("records", "records/s", 0), ("CPU", "µs of CPU time a record", 1)):
                stock, ours = (statistics.median(run[number] for run in runs[name]) for name in makers)
                each = ", ".join(f"{a[number]:,.4g} and {b[number]:,.4g}" for a, b in zip(*runs.values(), strict=True))
                print(
                    f"{way.__name__[1:]:>10}: {what}: {ours / stock:.2f} of stock: {ours:,.4g} to {stock:,.4g} {unit}"
                )
                print(f"{'':>12}stock and ours, run by run: {each}")


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[str]:
    if address is not None:
        yield address
        return
    with Coordinator().in_thread() as coordinator:
        yield coordinator.bootstrap_servers


def _fill(address: str, topic: str, records: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "queue.buffering.max.messages": 2 * records})
    for number in range(records):
        producer.produce(topic, VALUE, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        sys.exit("the records could not be produced within two minutes")


def _by_batch(consumer: Any) -> int:
    messages = consumer.consume(500, timeout=1.0)
    return sum(message.error() is None and message.value() is not None for message in messages)


def _one_by_one(consumer: Any) -> int:
    message = consumer.poll(1.0)
    return int(message is not None and message.error() is None and message.value() is not None)


def _run(consumer: Any, topic: str, records: int, read: Callable[[Any], int]) -> tuple[float, float]:
    """Read everything; records/s, and microseconds of this process's CPU time a record."""
    with contextlib.closing(consumer):
        consumer.subscribe([topic])
        count = 0
        while count == 0:
            count = read(consumer)
        first, begin, used = count, time.perf_counter(), time.process_time()
        while count < records:
            count += read(consumer)
        took, used = time.perf_counter() - begin, time.process_time() - used
        return (records - first) / took, used / (records - first) * 1_000_000


if __name__ == "__main__":
    main()
