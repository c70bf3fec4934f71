"""``python -m benchmarks.coordinator.rates``: what clients see of a coordinator over real sockets, beside Apache Kafka.

The load comes from one process (`benchmarks.coordinator.driver`), the coordinator is another, so that each has a
processor where there are two. Every row has the processor time that the coordinator took as well: that does not
depend on what else the machine does. An Apache Kafka is started for it where there is a JDK and Maven, and kfake where
there is Go.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from uuid import uuid4

from benchmarks.coordinator.brokers import Served, apache_kafka, kfake, ours, ours_safe
from benchmarks.coordinator.driver import Driver, Member, Script


def row(served: Served, what: str, figure: str, cpu_s: float = 0.0) -> None:
    """Print one result."""
    cpu = f"{cpu_s:8.2f} s" if cpu_s else ""
    print(f"  {served.name:<14} {what:<44} {figure:>26} {cpu}", flush=True)


def measure(served: Served, members: int, beat_s: float, sizes: Sequence[int]) -> None:
    """All rows of one coordinator. A group has ``members``; heartbeats go on for ``beat_s`` seconds."""
    with Driver(served.bootstrap, served.tls) as driver:
        _measure(driver, served, members, beat_s, sizes)


def _measure(driver: Driver, served: Served, members: int, beat_s: float, sizes: Sequence[int]) -> None:
    if served.ready_s is not None:
        row(served, "process start until it listens", f"{served.ready_s * 1000:.0f} ms", served.cpu_s())

    def timed(what: str, who: Sequence[Member], work: Callable[[], float]) -> None:
        before = served.cpu_s()
        seconds = work()
        row(served, f"{what} ({len(who):,} members)", f"{seconds:.2f} s", served.cpu_s() - before)

    # Its own group for the first answers of each API, which make the code that reads and writes them.
    first = driver.members(1, f"first-{uuid4()}")
    start = time.perf_counter()
    driver.join(first)
    row(served, "first member of a cold coordinator", f"{(time.perf_counter() - start) * 1000:.0f} ms")
    driver.close(first)

    group = driver.members(members, f"large-{uuid4()}")
    timed("first join to all stable", group, lambda: driver.join(group))
    row(served, f"memory with {members:,} members", f"{served.resident_mib():.0f} MiB")
    for size in sizes:
        more = driver.members(max(size - members, 0), f"more-{uuid4()}")
        driver.join(more)
        beating = (group + more)[:size]
        latencies: list[float] = []
        before = served.cpu_s()
        until_s = time.perf_counter() + beat_s
        driver.run(beating, lambda member, until_s=until_s, to=latencies: member.beat(until_s, to))  # type: ignore[misc]
        latencies.sort()
        cpu_us = (served.cpu_s() - before) / len(latencies) * 1e6
        rate = len(latencies) / beat_s
        p99_ms = latencies[int(len(latencies) * 0.99)] * 1000
        cpu = f", {cpu_us:.0f} µs CPU"
        row(served, f"heartbeats flat out ({size:,} members)", f"{rate:,.0f} /s, p99 {p99_ms:.1f} ms{cpu}")
        driver.close(more)
    leaving, staying = group[: members // 10], group[members // 10 :]

    def leave() -> float:
        return driver.run(leaving, Member.leave) + driver.run(staying, Member.rejoin)

    timed("10 % leave, to stable", staying, leave)
    driver.close(group)
    many = [member for number in range(100) for member in driver.members(members // 20, f"small-{number}-{uuid4()}")]
    timed("100 groups, to stable", many, lambda: driver.join(many))
    driver.close(many)
    consumers = driver.members(members, f"consumer-{uuid4()}")

    def join_consumers() -> float:
        def join(member: Member) -> Script:
            return member.join_consumer_group(members)

        return driver.run(consumers, join, meanwhile=join)

    timed("KIP-848, first join to all balanced", consumers, join_consumers)
    driver.close(consumers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each row."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--members", type=int, default=1000, help="a multiple of 20")
    options.add_argument("--seconds", type=float, default=4, help="how long heartbeats go on")
    options.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")], default=[100, 1000])
    options.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka and kfake out")
    chosen = options.parse_args(arguments)
    print("over sockets; the last column is the broker's processor time")

    def measured(served: Served) -> None:
        measure(served, chosen.members, chosen.seconds, chosen.sizes)

    for uvloop in (True, False):
        with ours(uvloop=uvloop) as served:
            measured(served)
    for disk, tls in ((True, False), (False, True), (True, True)):
        with ours_safe(tls=tls, disk=disk) as served:
            measured(served)
    for peer in () if chosen.no_kafka else (apache_kafka, kfake):
        with peer() as served_by_peer:
            if served_by_peer is not None:
                measured(served_by_peer)


if __name__ == "__main__":
    main()
