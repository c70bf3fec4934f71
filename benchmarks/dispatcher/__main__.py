"""Producers with a dispatcher beside their clients' own partitioners: ``python -m benchmarks.dispatcher``.

Three brokers lead 50, 25 and 15 of 90 partitions. Both producers of a client send the same records, one after the
other, in pairs whose order alternates: as many as they can (records/s and CPU), then at a fixed rate (latency).

slow      The broker that leads most is slowed: each of its Produce requests waits, or with --apache its process stands
          still by turns. Each pair has new producers; the first fifth of the records at a fixed rate does not count.
healthy   No broker is slowed. Pairs are many and short, and all of a client's have the same two producers.

A table shows the median of both and of their ratios, and the interval that it lies in with 95 % confidence (bootstrap).
With --java, Java's producer (KIP-794) sends at the same rate in each pair, with the same warm-up.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
from dataclasses import dataclass

from benchmarks.dispatcher.apache import ApacheCluster, apache_cluster, javas_latencies
from benchmarks.dispatcher.cluster import LEADS, SLOWED, TOPIC, Cluster, cluster
from benchmarks.dispatcher.pairs import compare
from benchmarks.dispatcher.produce import CLIENTS, LINGER_MS, VALUE, serve
from benchmarks.markdown import markdown

_WARM_UP = 5
"""One of so many records at a fixed rate, before those that count."""


@dataclass(frozen=True, slots=True)
class _Scene:
    """How producers are compared."""

    name: str
    pairs: int
    seconds: float
    """At the fixed rate."""
    fresh: bool
    """Whether each pair has new producers."""


_Seen = dict[str, list[tuple[float, float]]]
"""The pairs of a client, by quantity: theirs and ours."""


def main() -> None:
    """Run what the command line asks for, and print a table for each scene."""
    options = argparse.ArgumentParser(
        prog="benchmarks.dispatcher", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--client", action="append", choices=CLIENTS, help="default: all")
    options.add_argument("--scene", action="append", choices=["slow", "healthy"], help="default: both")
    options.add_argument("--pairs", type=int, default=5, help="of the scene slow")
    options.add_argument("--healthy-pairs", type=int, default=12)
    options.add_argument("--records", type=int, default=8_000, help="as many as they can")
    options.add_argument("--rate", type=float, default=2000.0, help="records a second...")
    options.add_argument("--seconds", type=float, default=3.0, help="... for so long; a quarter in healthy")
    options.add_argument("--apache", action="store_true", help="on Apache Kafka instead of the coordinator")
    options.add_argument("--java", action="store_true", help="with Java's producer")
    given = options.parse_args()
    slowed_ms = 200 if given.apache else 50
    scenes = [
        _Scene("slow", given.pairs, given.seconds, fresh=True),
        _Scene("healthy", given.healthy_pairs, given.seconds / 4, fresh=False),
    ]
    with apache_cluster() if given.apache else cluster() as brokers:
        for scene in scenes:
            if scene.name in (given.scene or ["slow", "healthy"]):
                brokers.slow(slowed_ms if scene.name == "slow" else 0)
                _print(scene, _play(scene, brokers, given), given, slowed_ms)


def _play(scene: _Scene, brokers: Cluster | ApacheCluster, given: argparse.Namespace) -> dict[str, _Seen]:
    clients, count = given.client or CLIENTS, int(given.rate * scene.seconds)
    seen: dict[str, _Seen] = {client: {} for client in clients}
    partitioners = ("own", "loadwise")
    with contextlib.ExitStack() as kept:
        running = {}
        if not scene.fresh:
            for client in clients:
                for partitioner in partitioners:
                    running[client, partitioner] = kept.enter_context(_Producer(client, partitioner, brokers))
                    running[client, partitioner].send(given.records, given.records, 0)
        for pair in range(scene.pairs):
            steady: dict[str, dict[str, float]] = {}
            for client in clients:
                found: dict[str, dict[str, float]] = {}
                for partitioner in partitioners if pair % 2 else reversed(partitioners):
                    with contextlib.ExitStack() as opened:
                        producer = running.get((client, partitioner))
                        if producer is None:
                            producer = opened.enter_context(_Producer(client, partitioner, brokers))
                        found[partitioner] = _measure(producer, scene, given)
                steady[client] = found["loadwise"]
                for name, theirs in found["own"].items():
                    seen[client].setdefault(name, []).append((theirs, found["loadwise"][name]))
            if given.java and scene.fresh:
                java = javas_latencies(
                    brokers.address,
                    count,
                    count // (_WARM_UP - 1),
                    rate=given.rate,
                    value_bytes=len(VALUE),
                    linger_ms=LINGER_MS,
                )
                for client in clients:
                    for name, theirs in java.items():
                        seen[client].setdefault(f"{name} beside Java's", []).append((theirs, steady[client][name]))
            print(f"{scene.name}: pair {pair + 1} of {scene.pairs}", file=sys.stderr, flush=True)
    return seen


def _measure(producer: _Producer, scene: _Scene, given: argparse.Namespace) -> dict[str, float]:
    count = int(given.rate * scene.seconds)
    steady = producer.send(count, count // (_WARM_UP - 1) if scene.fresh else 0, given.rate)
    flood = producer.send(given.records, 0, 0)
    return {
        "records/s": flood["records/s"],
        "CPU µs": flood["CPU µs"],
        "mean ms": steady["mean ms"],
        "p99 ms": steady["p99 ms"],
    }


class _Producer:
    """A producer in a process of its own, until the block ends."""

    def __init__(self, client: str, partitioner: str, brokers: Cluster | ApacheCluster) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        arguments = (theirs, client, partitioner, brokers.address, TOPIC)
        self._process = spawn.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> _Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join()

    def send(self, records: int, warm_up: int, rate: float) -> dict[str, float]:
        """Send records, after others that do not count; return what was measured."""
        self._pipe.send((records, warm_up, rate))
        try:
            found: dict[str, float] = self._pipe.recv()
        except EOFError:
            raise SystemExit("the producer has ended; see its error above") from None
        if found["failures"]:
            raise SystemExit(f"{found['failures']:.0f} records failed")
        return found


def _print(scene: _Scene, seen: dict[str, _Seen], given: argparse.Namespace, slowed_ms: int) -> None:
    where = "Apache Kafka" if given.apache else "coordinator"
    slowed = f"broker {SLOWED}, which leads {LEADS[SLOWED]} of {sum(LEADS.values())} partitions, slowed by"
    about = f"{slowed} {slowed_ms} ms" if scene.name == "slow" else "no broker slowed"
    print(f"\n{where}, {about}; own to loadwise, {scene.pairs} pairs, load {os.getloadavg()[0]:.1f}\n")
    rows = [[client, *(str(compare(pairs)) for pairs in found.values())] for client, found in seen.items()]
    print(markdown([scene.name, *next(iter(seen.values()))], rows), flush=True)


if __name__ == "__main__":
    main()
