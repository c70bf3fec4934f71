"""``python -m benchmarks.coordinator.rates``: what clients see of a coordinator over real sockets, beside Apache Kafka.

The load comes from one process (`benchmarks.coordinator.driver`), the coordinator is another, so that each has a
processor where there are two. The last column of each line is the processor time that the coordinator took: that does
not depend on what else the machine does. An Apache Kafka is started for it where there is a JDK and Maven, and kfake
where there is Go.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from uuid import uuid4

from benchmarks.coordinator.brokers import Served, apache_kafka, kfake, ours, ours_safe
from benchmarks.coordinator.driver import Driver, Member, Script
from benchmarks.coordinator.figures import Figures


def measure(figures: Figures, served: Served, members: int, beat_s: float, sizes: Sequence[int]) -> None:
    """All figures of one coordinator. A group has ``members``; heartbeats go on for ``beat_s`` seconds."""
    with Driver(served.bootstrap, served.tls) as driver:
        if served.ready_s is not None:
            figures.add(served, "process start until it listens", "{:.2f} s", served.ready_s, cpu_s=served.cpu_s())
        # Its own group for the first answers of each API, which make the code that reads and writes them.
        first = driver.members(1, f"first-{uuid4()}")
        figures.add(served, "first member of a cold coordinator", "{:.2f} s", driver.join(first))
        driver.close(first)

        group = driver.members(members, f"large-{uuid4()}")
        driver.join(group)
        figures.add(served, f"memory with {members:,} members", "{:.0f} MiB", served.resident_mib())
        for size in sizes:
            more = driver.members(max(size - members, 0), f"more-{uuid4()}")
            driver.join(more)
            _beat(figures, served, driver, (group + more)[:size], beat_s)
            driver.close(more)
        driver.close(group)

        def join_consumers(member: Member) -> Script:
            return member.join_consumer_group(members)

        consumers = driver.members(members, f"consumer-{uuid4()}")
        before = served.cpu_s()
        seconds = driver.run(consumers, join_consumers, meanwhile=join_consumers)
        what = f"{members:,} members of KIP-848, to all balanced"
        figures.add(served, what, "{:.2f} s", seconds, cpu_s=served.cpu_s() - before)


def _beat(figures: Figures, served: Served, driver: Driver, members: Sequence[Member], beat_s: float) -> None:
    latencies: list[float] = []
    before = served.cpu_s()
    until_s = time.perf_counter() + beat_s
    driver.run(members, lambda member: member.beat(until_s, latencies))
    latencies.sort()
    cpu_s = served.cpu_s() - before
    note = f"{cpu_s / len(latencies) * 1e6:.0f} µs CPU each"
    what = f"heartbeats a second, {len(members):,} members"
    figures.add(served, what, "{:,.0f}", len(latencies) / beat_s, note=note, cpu_s=cpu_s)
    figures.add(
        served, f"their p99, {len(members):,} members", "{:.1f} ms", latencies[int(len(latencies) * 0.99)] * 1000
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each figure, and a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--members", type=int, default=1000, help="members of a group (default: 1000)")
    options.add_argument("--seconds", type=float, default=4, help="how long heartbeats go on")
    options.add_argument("--sizes", type=lambda text: [int(each) for each in text.split(",")], default=[100, 1000])
    options.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka and kfake out")
    chosen = options.parse_args(arguments)
    figures = Figures()

    def measured(served: Served) -> None:
        measure(figures, served, chosen.members, chosen.seconds, chosen.sizes)

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
    print(f"\n{figures.table('over sockets, from one process')}")


if __name__ == "__main__":
    main()
