"""Runs programs of other people's on Apache Kafka and on our coordinator, and makes ``docs/programs.md`` of that.

``make test-programs`` runs all of them, ``make test-programs PROGRAMS="kcat Faust"`` those whose names have one of
these words in them; the page keeps what it tells of the others. At its first run each is installed by its registry's
ordinary client. One runs at a time. A program that cannot be installed is shown as such.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from catalogue import programs  # noqa: E402
from coordinator_process import coordinator  # noqa: E402
from installers import NotInstalledError, environment_of  # noqa: E402
from kafka_process import VERSION, running_kafka  # noqa: E402
from steps import failure  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "programs.md"
HEAD = f"""# Programs on Apache Kafka and on the coordinator

Programs of other people's, each run with the same commands on Apache Kafka {VERSION} and on loadwise's coordinator.
`make test-programs` installs them, runs them and makes this page; `tests/programs/catalogue` has every program's
commands and what must be seen. *yes*: it did what it should. *no*: it did not.
"""
OURS, KAFKA = "loadwise", f"Apache Kafka {VERSION}"


def before() -> dict[str, list[str]]:
    """What the page tells of each program by now: its cells behind the name."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| ")]
    return {name: cells[1:] for name, *cells in rows}


def page(seen: Mapping[str, Mapping[str, str]]) -> str:
    """The page for what programs showed on each broker, by their names; other programs stay as they are on it."""
    everything, known = list(programs()), before()
    cells = {
        each.name: list(seen[each.name].values()) if each.name in seen else known.get(each.name, ["not tried"] * 2)
        for each in everything
    }
    works = [sum(row[column] == "yes" for row in cells.values()) for column in (0, 1)]
    lines = [HEAD, f"Of {len(cells)} programs, {works[0]} work on Apache Kafka and {works[1]} on the coordinator.\n"]
    for title, group in groupby(everything, key=lambda each: each.kind):
        lines += [f"## {title}\n", f"| program | tried with | {KAFKA} | {OURS} |", "|---|---|---|---|"]
        lines += [f"| {each.name} | {each.does} | {' | '.join(cells[each.name])} |" for each in group]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("words", nargs="*", help="run programs whose names have one of these words (default: all)")
    options.add_argument("--only", choices=("ours", "kafka"), help="on one of the brokers alone")
    given = options.parse_args()
    words = [word.lower() for word in given.words]
    chosen = [each for each in programs() if not words or any(word in each.name.lower() for word in words)]
    if not chosen:
        raise SystemExit(f"no program's name has any of: {', '.join(words)}")
    seen: dict[str, dict[str, str]] = {}
    with contextlib.ExitStack() as stack:
        brokers = {}
        if given.only != "ours":
            brokers[KAFKA] = stack.enter_context(running_kafka())
        if given.only != "kafka":
            brokers[OURS] = stack.enter_context(coordinator())
        for program in chosen:
            row = dict.fromkeys((KAFKA, OURS), "not tried")
            try:
                environment = environment_of(program)
            except NotInstalledError as error:
                row = dict.fromkeys(row, "not installed")
                print(f"{program.name}: {error}", flush=True)
            else:
                for name, address in brokers.items():
                    problem = failure(program, address, environment)
                    row[name] = "yes" if problem is None else "no"
                    if problem is not None:
                        print(f"---- {program.name} on {name} ----\n{problem}\n", flush=True)
            seen[program.name] = row
            if given.only is None:
                PAGE.write_text(page(seen))
            print(f"{program.name}: {', '.join(f'{name} {cell}' for name, cell in row.items())}", flush=True)
    worse = [name for name, row in seen.items() if row[OURS] == "no" and row[KAFKA] != "no"]
    if worse:
        raise SystemExit(f"work on Apache Kafka and not on the coordinator: {', '.join(worse)}")


if __name__ == "__main__":
    main()
