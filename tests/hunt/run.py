"""Run a tier many times, each in another order, and show which tests do not pass every time.

``make hunt RUNS=20`` runs the default tier 20 times, ``make hunt HUNT="--busy 2 -- -m kafka"`` what needs Kafka, beside
two busy loops. Each run's output stays in ``.hunt``. Exits with 1 if any run failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / ".hunt"
BUSY_LOOP = "while True: pass"
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?|\S+\.py)(?: - .*)?$", re.MULTILINE)
SUMMARY = re.compile(r"^=* ?(.*(?:passed|failed|error|no tests ran).*?) in [\d.]+s.*$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """What one run of the tests showed."""

    seed: int
    load: float
    """The machine's load average over the last minute, at its end."""
    seconds: float
    exit_code: int
    summary: str
    failures: list[str]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="of the first run's order; then the next one"
    )
    parser.add_argument("--workers", type=int, default=5, help="how many processes run the tests")
    parser.add_argument("--busy", type=int, default=0, help="how many busy loops run beside the tests")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, behind --")
    return parser.parse_args()


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep so many processors busy."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(seed: int, workers: int, pytest: list[str]) -> Run:
    """Run the tests once in the order of a seed."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        str(workers),
        "--dist",
        "loadgroup",
        "--shuffle",
        str(seed),
        *pytest,
    ]
    log = LOGS / f"{seed}.log"
    began = time.monotonic()
    with log.open("w") as output:
        done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False)
    text = log.read_text()
    summaries = SUMMARY.findall(text) or ["no summary"]
    return Run(
        seed, os.getloadavg()[0], time.monotonic() - began, done.returncode, summaries[-1], FAILURE.findall(text)
    )


def main() -> int:
    given = arguments()
    LOGS.mkdir(exist_ok=True)
    runs: list[Run] = []
    print("| run | seed | load | seconds | result |\n|---|---|---|---|---|", flush=True)
    with busy_loops(given.busy):
        for number in range(given.runs):
            runs.append(done := run(given.seed + number, given.workers, given.pytest))
            cells = (number + 1, done.seed, f"{done.load:.1f}", f"{done.seconds:.0f}", done.summary)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
    failed = [each for each in runs if each.exit_code]
    print(f"\n{len(runs) - len(failed)} of {len(runs)} runs passed; their output is in {LOGS}")
    for test in sorted({test for each in failed for test in each.failures}):
        print(f"  {test}: {', '.join(f'--shuffle {each.seed}' for each in failed if test in each.failures)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
