"""``python -m benchmarks.speed``: measures, and prints tables; ``--help`` lists what can be chosen."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.speed import java, page, table
from benchmarks.speed.cases import ON_REQUEST, PHASES, SIZES, STRATEGY_NAMES
from benchmarks.speed.measure import AIOKAFKA, KAFKA_PYTHON, MEASURES, Cell, Plan, measure
from loadwise.assignor.strategy import strategies

_MODULES = {KAFKA_PYTHON: "kafka", AIOKAFKA: "aiokafka"}


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
        java=_java(arguments),
        python=_clients(arguments),
    )
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}; load average {_load()}"
    print(machine)
    cells: list[Cell] = []
    rows: dict[str, list[list[str]]] = {}
    for number, case in enumerate(measure(plan, _progress)):
        cells += case
        if arguments.json:
            with arguments.json.open("a") as lines:
                lines.writelines(json.dumps(asdict(cell)) + "\n" for cell in case)
        rows.setdefault(case[0].size.name, []).append(table.row(case))
        if (number + 1) % (len(plan.strategies) * len(plan.phases)) == 0:
            print(f"\n{case[0].size.name} (partitions x members); load average {_load()}; times in ms, memory in MB\n")
            print("\n".join(table.markdown(table.HEADS, rows[case[0].size.name])), flush=True)
    _progress("")
    print("\n" + "\n".join(f"{name}: {meaning}" for name, meaning in table.LEGEND))
    failed = {f"{cell.runner}, {cell.strategy}, {cell.phase}: {cell.gave_up}" for cell in cells if cell.gave_up}
    print("\n".join(["", *sorted(failed)]))
    if len(plan.sizes) > 1:
        sizes = [f"{size.partitions:,}" for size in plan.sizes]
        steps = [f"{measure} {size}" for measure in ("e", "bare e") for size in sizes[1:]]
        print("\nGrowth: our time in ms, and exponents e between one size and the next: time ~ partitions^e\n")
        print("\n".join(table.markdown(["strategy, phase", *sizes, *steps], table.growth(cells))))
    arguments.html.write_text(page.render(cells, f"{machine} at the start, {_load()} at the end"), encoding="utf-8")
    print(f"\n{arguments.html.resolve()}")


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
    parser.add_argument("--heap", default="4g", help="the heap that Java gets (default: 4g)")
    parser.add_argument("--no-java", action="store_true", help="leave Kafka's own assignors out")
    parser.add_argument("--no-python", action="store_true", help="leave kafka-python's and aiokafka's out")
    parser.add_argument(
        "--html",
        type=Path,
        default=Path("benchmark-speed.html"),
        help="where the page with the log-log pictures goes (default: benchmark-speed.html)",
    )
    parser.add_argument("--json", type=Path, help="append every measurement to this file, an object a line")
    return parser.parse_args()


def _java(arguments: argparse.Namespace) -> list[str]:
    if arguments.no_java:
        return []
    try:
        return java.command(arguments.heap)
    except java.JavaMissingError as error:
        print(error)
        return []


def _clients(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.no_python else [client for client in _MODULES if _is_installed(client)]


def _is_installed(client: str) -> bool:
    from importlib.util import find_spec

    if find_spec(_MODULES[client]) is not None:
        return True
    print(f"{client}'s assignors are left out: pip install {client}")
    return False


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _progress(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)
    elif what:
        print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
