"""A producer with a dispatcher beside the client's own partitioner: ``python -m benchmarks.dispatcher``.

Three brokers lead 50, 25 and 15 of 90 partitions. Both producers send the same records, one after the other, in five
pairs whose order alternates: once as many as they can (records/s), once at a fixed rate (latency). In one scene all
brokers answer at once, in the other each Produce request to the broker that leads most waits. A ratio is ours by the
client's own; below each median stands the range of all pairs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from benchmarks.dispatcher.cluster import LEADS, SLOWED, TOPIC, cluster
from benchmarks.dispatcher.produce import CLIENTS, LINGER_MS, VALUE

SLOWED_MS = 50


class Brokers(Protocol):
    """A cluster that runs."""

    address: str

    def slow(self, ms: int) -> None:
        """Slow one broker; 0: no longer."""


def main() -> None:
    """Run what the command line asks for, and print a table."""
    options = argparse.ArgumentParser(prog="benchmarks.dispatcher", description=__doc__)
    options.add_argument("--client", action="append", choices=CLIENTS, help="default: all")
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--records", type=int, default=30_000, help="as many as they can")
    options.add_argument("--rate", type=float, default=2000.0, help="records a second...")
    options.add_argument("--seconds", type=float, default=10.0, help="... for so long")
    options.add_argument("--slowed-ms", type=int, default=SLOWED_MS)
    options.add_argument("--against", choices=["own", "sticky"], default="own", help="sticky: kafka-python's other one")
    options.add_argument("--apache", action="store_true", help="on Apache Kafka: the broker stands still by turns")
    options.add_argument("--java", action="store_true", help="Java's producer at the same rate, in each pair")
    given = options.parse_args()
    if given.apache:
        from benchmarks.dispatcher.apache import apache_cluster

        running: contextlib.AbstractContextManager[Brokers] = apache_cluster()
    else:
        running = cluster()
    with running as brokers:
        for client in given.client or CLIENTS:
            for slowed_ms in (0, given.slowed_ms):
                brokers.slow(slowed_ms)
                _compare(client, brokers, slowed_ms, given)
    _print_cost()


def _compare(client: str, brokers: Brokers, slowed_ms: int, given: argparse.Namespace) -> None:
    ratios: dict[str, list[float]] = {}
    seen: dict[str, list[tuple[float, float]]] = {}
    for pair in range(given.pairs):
        found: dict[str, dict[str, float]] = {}
        order = [given.against, "loadwise"]
        for partitioner in order if pair % 2 else reversed(order):
            flood = _run(client, partitioner, brokers, given.records, 0)
            steady = _run(client, partitioner, brokers, int(given.rate * given.seconds), given.rate)
            found[partitioner] = {"records/s": flood["records_per_s"], "flood mean ms": flood["mean_ms"]}
            found[partitioner] |= {"mean ms": steady["mean_ms"], "p99 ms": steady["p99_ms"]}
            found[partitioner] |= {"CPU µs": flood["cpu_us"]}
        if given.java:
            from benchmarks.dispatcher.apache import javas_latencies_ms

            records = int(given.rate * given.seconds)
            mean_ms, p99_ms = javas_latencies_ms(brokers.address, records, given.rate, len(VALUE), LINGER_MS)
            found[given.against] |= {"Java's mean ms": mean_ms, "Java's p99 ms": p99_ms}
            ours = found["loadwise"]
            ours |= {"Java's mean ms": ours["mean ms"], "Java's p99 ms": ours["p99 ms"]}
        for name, own in found[given.against].items():
            ratios.setdefault(name, []).append(found["loadwise"][name] / own)
            seen.setdefault(name, []).append((own, found["loadwise"][name]))
    scene = f"broker {SLOWED}, which leads {LEADS[SLOWED]}, {slowed_ms} ms slower" if slowed_ms else "no broker slowed"
    print(f"{client} against {given.against}, {scene}, median of {given.pairs} pairs", flush=True)
    for name, found_ratios in ratios.items():
        own, ours = (statistics.median(column) for column in zip(*seen[name], strict=True))
        low, high = min(found_ratios), max(found_ratios)
        print(f"  {name:>14}: {own:10,.2f} to {ours:10,.2f}, {statistics.median(found_ratios) - 1:+.0%}", end="")
        print(f" ({low - 1:+.0%} to {high - 1:+.0%})", flush=True)


def _run(client: str, partitioner: str, brokers: Brokers, records: int, rate: float) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.dispatcher.produce", client, partitioner, brokers.address, TOPIC]
    ran = subprocess.run([*command, str(records), str(rate)], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr)
    found: dict[str, float] = json.loads(ran.stdout)
    if found["failures"]:
        raise SystemExit(f"{found['failures']} records failed: {ran.stderr}")
    return found


class _Metadata:
    """A client's metadata of 90 partitions, at its own price."""

    def __init__(self) -> None:
        leaders = [broker for broker, count in LEADS.items() for _ in range(count)]
        self._partitions = {TOPIC: dict(enumerate(leaders))}

    def topics(self) -> set[str]:
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(self._partitions[topic])

    def available_partitions_for_topic(self, topic: str) -> set[int]:
        return {partition for partition, leader in self._partitions[topic].items() if leader != -1}

    def leader_for_partition(self, partition: Any) -> int:
        return self._partitions[partition.topic][partition.partition]


class _Accumulator:
    """aiokafka's, while a batch of each partition is open."""

    def __init__(self) -> None:
        self._batches = {(TOPIC, number): True for number in range(sum(LEADS.values()))}


def _print_cost() -> None:
    """Print what choosing a partition costs for each record, in the client's own way and in ours."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.partitioner import DefaultPartitioner as AiokafkasPartitioner
    from kafka.partitioner import DefaultPartitioner

    from loadwise import AiokafkaProducer, Dispatcher
    from loadwise.dispatcher.clients.kafka_python import KafkaPythonPartitioner

    def producer(kind: Any) -> Any:
        made = kind.__new__(kind)
        made._metadata, made._closed, made._partitioner = _Metadata(), True, AiokafkasPartitioner()
        return made

    ours = producer(AiokafkaProducer)
    ours._message_accumulator, ours.dispatcher = _Accumulator(), Dispatcher()
    ours.dispatcher.follow(ours)
    metadata, value = _Metadata(), bytes(500)
    for key in (None, b"key-of-16-bytes-"):
        cost = {
            "kafka-python": [
                _cost_us(partial(each.partition, TOPIC, key, key, value, value, metadata))
                for each in (DefaultPartitioner(), KafkaPythonPartitioner(Dispatcher()))
            ],
            "aiokafka": [
                _cost_us(partial(each._partition, TOPIC, None, key, value, key, value))
                for each in (producer(AIOKafkaProducer), ours)
            ],
        }
        for client, (own_us, ours_us) in cost.items():
            print(f"{client}, {'a key' if key else 'no key'}: own {own_us:.2f} µs a record, ours {ours_us:.2f} µs")


def _cost_us(call: Callable[[], object]) -> float:
    """Return the least CPU time of a call, in microseconds."""
    return min(timeit.repeat(call, timer=time.process_time, number=20_000, repeat=5)) / 20_000 * 1e6


if __name__ == "__main__":
    main()
