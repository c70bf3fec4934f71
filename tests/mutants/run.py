"""Change a random sample of the code, one place at a time, and show which changes no test notices.

``make mutants`` takes 100 changes of each folder; ``make mutants SEED=7 EACH=15 FOLDERS="protocol"`` repeats a smaller
sample. Per change it runs only tests that reach the changed line, in a fork that sees the changed source; the checkout
stays as it is. What tests reach is kept in ``.mutants`` until the code changes. Needs Linux or macOS.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from forked import Outcome, Took, Work, run_all
from mutations import Mutant, mutants, mutate
from reach import Reach

FOLDERS = "assignor/algorithms assignor/live assignor/staging.py coordinator/groups spark_source/planning protocol"
TESTS = "tests/assignor tests/protocol tests/coordinator tests/spark_source"
BUDGET_CPU_S, MOST_TESTS = 20.0, 1000
"""Tests that together took so long unchanged, or so many, are enough for one mutant."""


@dataclass
class Tried:
    """A mutant, the tests that reach it, and how it ended."""

    folder: str
    path: Path
    mutant: Mutant
    tests: dict[str, Took]
    outcome: Outcome | None = None

    @property
    def result(self) -> str:
        if not self.tests:
            return "unreached"
        assert self.outcome is not None
        return "survived" if self.outcome.exit_code in (0, 5) else "killed"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="decides which changes are in the sample")
    parser.add_argument("--each", type=int, default=100, help="the changes per folder")
    parser.add_argument("--folders", default=FOLDERS, help="folders and files with the code to change")
    parser.add_argument("--tests", default=TESTS, help="folders and files with tests")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="of the checkout")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def files(root: Path, names: str, pattern: str) -> list[Path]:
    """Return the files in folders, and those that are named."""
    found = [
        path
        for name in names.split()
        for path in ([root / name] if (root / name).is_file() else (root / name).rglob(pattern))
    ]
    return sorted({path.resolve() for path in found})


def sample(root: Path, folder: str, each: int, seed: int) -> list[tuple[Path, Mutant]]:
    """Return so many changes of a folder, the same for the same seed."""
    paths = files(root, folder, "*.py")
    possible = [(path, mutant) for path in paths for mutant in mutants(path.read_text())]
    chosen = Random(f"{seed} {folder}").sample(range(len(possible)), min(each, len(possible)))
    return [possible[index] for index in sorted(chosen)]


def chosen_tests(folder: str, reaching: Sequence[str], reach: Reach) -> dict[str, Took]:
    """Return the tests to run for a mutant of a folder: those of its own folder, then others, the fastest first."""
    own = f"tests/{folder.removesuffix('.py')}/"
    chosen: dict[str, Took] = {}
    left_s = BUDGET_CPU_S
    for test in sorted(reaching, key=lambda test: (not test.startswith(own), reach.took(test).wall_s))[:MOST_TESTS]:
        took = reach.took(test)
        if not chosen or took.cpu_s <= left_s:
            chosen[test] = took
            left_s -= took.cpu_s
    return chosen


def work(tried: Tried) -> Work:
    """Return what the fork of a mutant does."""
    return Work(files_of(tried.tests), {tried.path: partial(mutate, index=tried.mutant.index)}, tried.tests)


def files_of(tests: Iterable[str]) -> list[str]:
    """Return the files of tests, each once."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def try_all(each: Sequence[Tried], processes: int, logs: Path) -> None:
    """Run each mutant's tests."""

    def ended(number: int, outcome: Outcome) -> None:
        each[number].outcome = outcome
        print(f"\r{number + 1} of {len(each)}", end="", file=sys.stderr, flush=True)

    run_all([work(one) for one in each], processes, logs, ended)
    print(file=sys.stderr)


def drop_unreliable(tried: Sequence[Tried], processes: int, logs: Path) -> list[Tried]:
    """Run the tests that noticed changes without them; return the mutants to try again, without tests that fail."""
    noticed = [one for one in tried if one.outcome is not None and one.outcome.failed]
    tests = {one.outcome.failed[0]: one.tests[one.outcome.failed[0]] for one in noticed if one.outcome is not None}
    of_files = [
        {test: took for test, took in tests.items() if test.partition("::")[0] == name} for name in files_of(tests)
    ]
    failing: set[str] = set()

    def ended(number: int, outcome: Outcome) -> None:
        failing.update(outcome.failed if outcome.exit_code in (0, 1) else of_files[number])

    run_all([Work(files_of(each), {}, each, stop=False) for each in of_files], processes, logs, ended)
    for test in sorted(failing):
        print(f"fails without a change too, and counts for nothing: {test}")
    again = [one for one in noticed if one.outcome is not None and one.outcome.failed[0] in failing]
    for one in again:
        one.tests = {test: seconds for test, seconds in one.tests.items() if test not in failing}
    return again


def table(tried: Sequence[Tried], folders: Sequence[str]) -> str:
    """Return how many mutants of each folder the tests noticed, as Markdown."""
    rows = ["| folder | mutants | killed | survived | unreached | score |", "|---|---|---|---|---|---|"]
    for folder in folders:
        count = Counter(one.result for one in tried if one.folder == folder)
        killed, total = count["killed"], count.total()
        score = f"{100 * killed / total:.0f} %" if total else "-"
        rows.append(f"| {folder} | {total} | {killed} | {count['survived']} | {count['unreached']} | {score} |")
    return "\n".join(rows)


def main() -> int:
    given = arguments()
    root: Path = given.root.resolve()
    os.chdir(root)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    folders = given.folders.split()
    print(
        f'the seed of this run: make mutants SEED={given.seed} EACH={given.each} FOLDERS="{given.folders}"', flush=True
    )
    samples = {folder: sample(root, folder, given.each, given.seed) for folder in folders}
    reach = Reach(root, files(root, f"{FOLDERS} {given.folders}", "*.py"), files(root, given.tests, "test_*.py"))
    reach.measure(given.processes, root / ".mutants")
    tried = [
        Tried(
            folder,
            path,
            mutant,
            chosen_tests(folder, reach.of(path, mutant.statement, in_function=mutant.in_function), reach),
        )
        for folder, sampled in samples.items()
        for path, mutant in sampled
    ]
    try_all([one for one in tried if one.tests], given.processes, root / ".mutants" / "tried")
    again = drop_unreliable(tried, given.processes, root / ".mutants" / "checked")
    try_all([one for one in again if one.tests], given.processes, root / ".mutants" / "again")
    print(table(tried, folders))
    for one in tried:
        if one.result != "killed":
            print(f"\n{one.path.relative_to(root)}:{one.mutant.line} {one.result}, {len(one.tests)} tests")
            print(f"  - {one.mutant.before}\n  + {one.mutant.after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
