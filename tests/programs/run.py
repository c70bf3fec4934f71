"""Runs programs of other people's on Apache Kafka and on our coordinator, and makes ``docs/lab/programs.md`` of that.

``make test-programs`` runs all of them, and writes the page when the last one is done. A run that was ended before goes
on where it was; ``make test-programs PROGRAMS=--afresh`` begins with the first one. ``PROGRAMS="kcat Faust"`` runs
those whose names have one of these words in them, and puts their rows alone into the page. At its first run each is
installed by its registry's ordinary client. One runs at a time. A program that cannot be installed is shown as such.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from catalogue import Program, programs  # noqa: E402
from coordinator_process import coordinator  # noqa: E402
from installers import NotInstalledError, cache_folder, environment_of  # noqa: E402
from kafka_process import VERSION, running_kafka  # noqa: E402
from progress import Progress  # noqa: E402
from steps import failure  # noqa: E402

PAGE = HERE.parents[1] / "docs" / "lab" / "programs.md"
HEAD = f"""# Programs on Apache Kafka and on the coordinator

Programs of other people's, each run with the same commands on Apache Kafka {VERSION} and on loadwise's coordinator.
`make test-programs` installs them, runs them and makes this page; `tests/programs/catalogue` has every program's
commands and what must be seen. *yes*: it did what it should. *no*: it did not.
"""
OURS, KAFKA = "loadwise", f"Apache Kafka {VERSION}"
AGAIN = "Run again since then: "


def before() -> dict[str, list[str]]:
    """What the page tells of each program by now: its cells behind the name."""
    lines = PAGE.read_text().splitlines() if PAGE.exists() else []
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines if line.startswith("| ")]
    return {name: cells[1:] for name, *cells in rows}


def page(rows: Mapping[str, Sequence[str]], told: str) -> str:
    """The page for what programs showed on each broker, by their names. ``told``: when they were run."""
    everything = list(programs())
    cells = {each.name: rows.get(each.name, ["not tried"] * 2) for each in everything}
    works = [sum(row[column] == "yes" for row in cells.values()) for column in (0, 1)]
    lines = [
        HEAD,
        f"Of {len(cells)} programs, {works[0]} work on Apache Kafka and {works[1]} on the coordinator.",
        told,
    ]
    lines.append("")
    for title, group in groupby(everything, key=lambda each: each.kind):
        lines += [f"## {title}\n", f"| program | tried with | {KAFKA} | {OURS} |", "|---|---|---|---|"]
        lines += [f"| {each.name} | {each.does} | {' | '.join(cells[each.name])} |" for each in group]
        lines.append("")
    return "\n".join(lines)


def of_one_run(progress: Progress) -> str:
    """The page of a run of all programs."""
    minutes = round(progress.seconds / 60)
    return page(progress.rows, f"All were run one after the other on {progress.begun}, which took {minutes} minutes.")


def with_rows(rows: Mapping[str, Sequence[str]]) -> str:
    """The page as it is, with other rows for some programs, which it names."""
    lines = PAGE.read_text().splitlines()
    (run,) = [line for line in lines if line.startswith("All were run ")]
    named = [line.removeprefix(AGAIN).rstrip(".").split("; ") for line in lines if line.startswith(AGAIN)]
    names = sorted({*rows, *(named[0] if named else ())})
    return page(before() | dict(rows), f"{run}\n{AGAIN}{'; '.join(names)}.")


def tried(program: Program, brokers: Mapping[str, str]) -> tuple[list[str], float]:
    """Run a program on each broker; its cells of the table, and how many seconds that took."""
    row = dict.fromkeys((KAFKA, OURS), "not tried")
    try:
        environment = environment_of(program)
    except NotInstalledError as error:
        print(f"  not installed: {error}", flush=True)
        return ["not installed"] * len(row), 0.0
    seconds = 0.0
    for name, address in brokers.items():
        begin = time.monotonic()
        problem = failure(program, address, environment)
        took = time.monotonic() - begin
        seconds += took
        row[name] = "yes" if problem is None else "no"
        print(f"  {name}: {row[name]}, {took:.0f} s", flush=True)
        if problem is not None:
            print(re.sub("^", "    ", problem, flags=re.MULTILINE), flush=True)
    return list(row.values()), seconds


def chosen(words: Iterable[str], progress: Progress | None) -> list[Program]:
    """The programs with one of these words in their names; without words, those that a run has not had yet."""
    if progress is not None:
        return [each for each in programs() if each.name not in progress.rows]
    found = [each for each in programs() if any(word.lower() in each.name.lower() for word in words)]
    if not found:
        raise SystemExit(f"no program's name has any of: {', '.join(words)}")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("words", nargs="*", help="run programs whose names have one of these words (default: all)")
    options.add_argument("--only", choices=("ours", "kafka"), help="on one broker alone; the page is not changed then")
    options.add_argument("--afresh", action="store_true", help="do not go on with a run of all that was ended before")
    given = options.parse_args()
    if given.only and not given.words:
        options.error("--only is for some programs: name them")
    path = cache_folder() / "run.json"
    if given.afresh:
        path.unlink(missing_ok=True)
    progress = None if given.words else Progress.of(path, f"{datetime.now(UTC):%Y-%m-%d}")
    todo = chosen(given.words, progress)
    if progress is not None and progress.rows:
        print(f"going on with the run of {progress.begun}, which has had {len(progress.rows)} programs", flush=True)
    rows: dict[str, list[str]] = {} if progress is None else progress.rows
    with contextlib.ExitStack() as stack:
        brokers = {}
        if given.only != "ours":
            brokers[KAFKA] = stack.enter_context(running_kafka())
        if given.only != "kafka":
            brokers[OURS] = stack.enter_context(coordinator())
        total = len(rows) + len(todo)
        for number, program in enumerate(todo, len(rows) + 1):
            print(f"{number} of {total}: {program.name}", flush=True)
            cells, seconds = tried(program, brokers)
            if progress is None:
                rows[program.name] = cells
            else:
                progress.add(path, program.name, cells, seconds)
    if progress is not None:
        PAGE.write_text(of_one_run(progress))
        path.unlink(missing_ok=True)
    elif given.only is None:
        PAGE.write_text(with_rows(rows))
    worse = [name for name, (kafka, ours) in rows.items() if ours == "no" and kafka != "no"]
    if worse:
        raise SystemExit(f"work on Apache Kafka and not on the coordinator: {', '.join(worse)}")


if __name__ == "__main__":
    main()
