"""What clients see of a coordinator over real sockets.

The load comes from one process (`benchmarks.coordinator.driver`), the coordinator is another, so that each has a
processor where there are two.
"""

from __future__ import annotations

import time
from uuid import uuid4

from benchmarks.coordinator.brokers import Served
from benchmarks.coordinator.driver import Driver, Member, Script
from benchmarks.coordinator.figures import Figures
from benchmarks.processes import resident_mib


def measure(figures: Figures, served: Served, members: int, beating: int, beat_s: float) -> None:
    """Memory with a group of ``members``, heartbeats of some of them for ``beat_s`` seconds, and a join by KIP-848."""
    if served.ready_s is not None:
        figures.add(served, "process start until it listens", "{:.2f} s", served.ready_s, cpu_s=served.cpu_s())
    with Driver(served.address, served.tls) as driver:
        # Its own group for the first answers of each API, which make the code that reads and writes them.
        first = driver.members(1, f"first-{uuid4()}")
        driver.join(first)
        driver.close(first)

        group = driver.members(members, f"large-{uuid4()}")
        driver.join(group)
        figures.add(served, f"memory with {members:,} members", "{:.0f} MiB", resident_mib(served.pid))
        latencies: list[float] = []
        before, until_s = served.cpu_s(), time.perf_counter() + beat_s
        driver.run(group[:beating], lambda member: member.beat(until_s, latencies))
        latencies.sort()
        cpu_s = served.cpu_s() - before
        note = f"{cpu_s / len(latencies) * 1e6:.0f} µs CPU each"
        what = f"heartbeats a second, {beating:,} members"
        figures.add(served, what, "{:,.0f}", len(latencies) / beat_s, note=note, cpu_s=cpu_s)
        figures.add(served, "their p99", "{:.1f} ms", latencies[int(len(latencies) * 0.99)] * 1000)
        driver.close(group)

        def join_consumers(member: Member) -> Script:
            return member.join_consumer_group(members)

        consumers = driver.members(members, f"consumer-{uuid4()}")
        before = served.cpu_s()
        seconds = driver.run(consumers, join_consumers, meanwhile=join_consumers)
        what = f"{members:,} members of KIP-848, to all balanced"
        figures.add(served, what, "{:.2f} s", seconds, cpu_s=served.cpu_s() - before)
