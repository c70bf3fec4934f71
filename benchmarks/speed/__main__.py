"""``python -m benchmarks.speed``: measures, and prints tables; ``--help`` lists what can be chosen."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from itertools import chain

from benchmarks.markdown import markdown
from benchmarks.speed import java, table
from benchmarks.speed.cases import ON_REQUEST, PHASES, SIZES, STRATEGY_NAMES
from benchmarks.speed.measure import MEASURES, Cell, Plan, measure
from loadwise.assignor.strategy import strategies


def main() -> None:
    """Measure what the arguments ask for."""
    arguments = _arguments()
    plan = Plan(
        sizes=[size for size in (*SIZES, *ON_REQUEST) if size.partitions in arguments.sizes],
        strategies=arguments.strategies,
        phases=arguments.phases,
        measures=[name for name in MEASURES if name == "names" or name in arguments.measures],
        seconds=arguments.seconds,
        rounds=arguments.rounds,
        java=[] if arguments.no_java else _java(),
    )
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; load average {_load()}")
    cases: list[list[Cell]] = []
    for size in plan.sizes:
        rows = []
        for case in measure(plan, size, lambda what: print(what, file=sys.stderr, flush=True)):
            cases.append(case)
            rows.append(table.row(case))
        print(f"\n{size.name} (partitions x members); load average {_load()}; times in ms, memory in MB\n")
        print(markdown(table.HEADS, rows), flush=True)
    print("\n" + "\n".join(f"{name}: {meaning}" for name, meaning in table.LEGEND))
    print("\n".join(["", *table.gave_up(chain.from_iterable(cases))]))
    print(f"All sizes:\n\n{markdown(*table.all_sizes(cases))}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)

    def words(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument(
        "--sizes",
        type=lambda text: [int(word) for word in text.split(",")],
        default=[size.partitions for size in SIZES],
        help="numbers of partitions: "
        + ", ".join(f"{size.partitions} ({size.members} members)" for size in (*SIZES, *ON_REQUEST)),
    )
    parser.add_argument("--strategies", type=words, default=[*STRATEGY_NAMES], help=", ".join(strategies()))
    parser.add_argument("--phases", type=words, default=[*PHASES], help=", ".join(PHASES))
    parser.add_argument("--measures", type=words, default=[*MEASURES], help=", ".join(MEASURES))
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each measure of each case (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns that the assignors take (default: 3)")
    parser.add_argument("--no-java", action="store_true", help="leave Kafka's own assignors out")
    return parser.parse_args()


def _java() -> list[str]:
    try:
        return java.command()
    except java.JavaMissingError as error:
        print(error)
        return []


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
