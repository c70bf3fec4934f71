"""``python -m benchmarks.coordinator``: our coordinator over real sockets, beside Apache Kafka and kfake.

An Apache Kafka is started for it where there is a JDK and Maven, and kfake where there is Go. The last column of each
line is the processor time that the broker took: that does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

from benchmarks.coordinator import joins, rates, records
from benchmarks.coordinator.brokers import Served, apache_kafka, kfake, ours, ours_on_disk, ours_with_tls
from benchmarks.coordinator.figures import Figures

PARTS = ("rates", "joins", "records")
Start = Callable[[], AbstractContextManager[Served | None]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each figure, and a table for each part."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, help="only these parts")
    options.add_argument("--members", type=int, default=1000, help="members of a group (default: 1000)")
    options.add_argument("--seconds", type=float, default=4, help="how long 100 of them send heartbeats (default: 4)")
    options.add_argument("--shapes", default="1x1000,100x50", help="groups x members (default: 1x1000,100x50)")
    options.add_argument("--rounds", type=int, default=3, help="how often each shape is played (default: 3)")
    options.add_argument("--megabytes", type=int, default=50, help="values that are written and read in each case")
    options.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka and kfake out")
    chosen = options.parse_args(arguments)
    shapes = [tuple(map(int, shape.split("x"))) for shape in chosen.shapes.split(",")]
    peers: list[Start] = [] if chosen.no_kafka else [apache_kafka, kfake]
    starts: list[Start] = [partial(ours, uvloop=True), partial(ours, uvloop=False), ours_on_disk, ours_with_tls, *peers]
    if "rates" in chosen.only:
        figures = Figures()
        for start in starts:
            with _running(start) as brokers:
                for broker in brokers:
                    rates.measure(figures, broker, chosen.members, min(100, chosen.members), chosen.seconds)
        print(f"\n{figures.table('over sockets, from one process')}\n")
    if "joins" in chosen.only:
        figures = Figures()
        with _running(*starts) as brokers:
            for groups, members in shapes:
                for broker in brokers * chosen.rounds:
                    joins.measure(figures, broker, groups, members)
        print(f"\n{figures.table('over sockets, from four processes, medians')}\n")
    if "records" in chosen.only:
        figures = Figures()
        with _running(starts[0], *peers[:1]) as brokers:
            for case in records.CASES:
                for broker in brokers:
                    records.measure(figures, broker, case, chosen.megabytes * 1_000_000)
        print(f"\n{figures.table('records of 100 B')}")


@contextmanager
def _running(*starts: Start) -> Iterator[list[Served]]:
    """Brokers for one part only: members that it leaves behind must not expire during another one."""
    with ExitStack() as stack:
        brokers = [stack.enter_context(start()) for start in starts]
        yield [broker for broker in brokers if broker is not None]


if __name__ == "__main__":
    main()
