"""``python -m benchmarks.speed``: measures, and prints a table; ``--help`` lists what can be chosen.

The time is of a call from decoded subscriptions to every member's partitions by name. *ratio* is our time divided by
that of Java's assignor in the client, *wire* the same from JoinGroup's bytes to SyncGroup's, and *server* our time
divided by that of the KIP-848 assignor of the broker, which works on ids, not names. Below 1 we are faster. *MiB*
is the most that our process has held, its inputs included.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
from pathlib import Path

from maven import JarsMissingError, jars

from benchmarks.markdown import markdown
from benchmarks.speed.cases import ON_REQUEST, PHASES, SIZES, STRATEGY_NAMES
from benchmarks.speed.measure import MEASURES, Plan, measure
from benchmarks.speed.table import table
from loadwise.assignor.strategy import strategies


def main() -> None:
    """Measure what the arguments ask for."""
    arguments = _arguments()
    plan = Plan(
        sizes=[size for size in (*SIZES, *ON_REQUEST) if size.partitions in arguments.sizes],
        strategies=arguments.strategies,
        phases=arguments.phases,
        measures=arguments.measures,
        seconds=arguments.seconds,
        rounds=arguments.rounds,
        java=[] if arguments.no_java else _java(),
    )
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; load average {_load()}")
    found = {size: dict(measure(plan, size)) for size in plan.sizes}
    print(f"\n{markdown(*table(found))}\n\nload average {_load()}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

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
    here = Path(__file__).parent
    try:
        classpath = f"{jars(here / 'pom.xml', 'benchmark')}/*"
    except JarsMissingError as error:
        print(f"Java's assignors are left out: {error}")
        return []
    return [shutil.which("java") or "java", "-Xmx4g", "-cp", classpath, str(here / "JavaAssignors.java")]


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
