"""How fast `confluent_consumer` and the stock ``Consumer`` read: ``python -m benchmarks.confluent``.

Each run is a new consumer in a new group that reads the same topic from its beginning to its end, by ``consume(500)``
or by ``poll()``, and looks at each record's error and value. The clock runs from the first record to the last. The
consumers alternate for several runs, and the median counts. The process's CPU time is reported too, because it varies
less on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import uuid
from collections.abc import Callable
from statistics import median
from typing import Any

from confluent_kafka import Consumer

from benchmarks.markdown import markdown
from benchmarks.records import PARTITIONS, VALUE, publish
from loadwise import confluent_consumer
from loadwise.coordinator import Coordinator


def main() -> None:
    """Run what the command line asks for, and print a table."""
    options = argparse.ArgumentParser(prog="benchmarks.confluent", description=__doc__)
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--runs", type=int, default=5, help="of each consumer, by turns")
    options.add_argument("--bootstrap-servers", help="default: a coordinator of loadwise's own")
    options.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of both consumers")
    given = options.parse_args()
    settings = dict(each.split("=", 1) for each in given.set)
    makers: dict[str, Callable[[dict[str, Any]], Any]] = {"stock": Consumer, "loadwise": confluent_consumer}
    rows = []
    with contextlib.ExitStack() as stack:
        address = given.bootstrap_servers
        if address is None:
            address = stack.enter_context(Coordinator().in_thread()).bootstrap_servers
        topic = publish(address, "uniform", given.records)
        for name, read in (("consume(500)", _by_batch), ("poll()", _one_by_one)):
            runs: dict[str, list[tuple[float, float]]] = {who: [] for who in makers}
            for _ in range(given.runs):
                for who, make in makers.items():
                    config = {
                        "bootstrap.servers": address,
                        "group.id": uuid.uuid4().hex,
                        "auto.offset.reset": "earliest",
                    }
                    runs[who].append(_run(make(config | settings), topic, given.records, read))
            stock, ours = ([median(figures) for figures in zip(*runs[who], strict=True)] for who in makers)
            rows.append(
                [name, *(f"{it:,.0f}" for it in (stock[0], ours[0])), *(f"{it:.3g} µs" for it in (stock[1], ours[1]))]
            )
    heads = ["", *(f"{who}, records/s" for who in makers), *(f"{who}, CPU a record" for who in makers)]
    print(f"{given.records:,} records of {len(VALUE)} bytes in {PARTITIONS} partitions, medians of {given.runs} runs\n")
    print(markdown(heads, rows))


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
