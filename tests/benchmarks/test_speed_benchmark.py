"""The speed benchmark runs, with what is there, and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

from benchmarks.markdown import markdown
from benchmarks.speed.cases import Size
from benchmarks.speed.measure import JAVA, OURS, SERVER, TOO_SLOW, Cell
from benchmarks.speed.table import all_sizes, gave_up, row

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("first", "leave", "unequal", "unequal-leave")
SMALL, LARGE = Size(1_000, 10, 10), Size(10_000, 100, 100)


def _benchmark(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "benchmarks.speed", "--sizes", "1000", "--seconds", "0", "--rounds", "1"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_java_a_strategy_is_measured_in_every_phase_and_java_is_said_to_be_missing() -> None:
    text = _benchmark("--strategies", "range,weighted", PATH="")
    assert "apt-get install openjdk-17-jdk-headless maven" in text
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    times = {name: cells for name, *cells in rows if len(cells) == 11}
    for strategy, phase in product(("range", "weighted"), PHASES):
        ours, bare, *java, wire, _, _, _, _ = times[f"{strategy}, {phase}"]
        assert all(float(time) > 0 for time in (ours, bare, wire))
        assert java == [""] * 4


def test_tables_have_our_time_and_its_ratio_to_javas() -> None:
    cases = [
        [
            Cell(OURS, "range", "first", size, {"names": seconds, "bare": 0.001, "wire": 0.004}, 3_000_000, 9),
            Cell(JAVA, "range", "first", size, {"names": 0.008, "wire": 0.001}, 5_000_000, 9),
            Cell(SERVER, "range", "first", size, {}, 0, 0, gave_up=TOO_SLOW),
        ]
        for size, seconds in ((SMALL, 0.002), (LARGE, 2.0))
    ]
    assert row(cases[0]) == ["range, first", "2", "1", "8", "0.25", "> 60 s", "", "4", "1", "4.00", "3", "5"]
    assert list(gave_up(cases[0])) == ["Java server, range, first: > 60 s"]
    heads, rows = all_sizes(cases)
    assert heads == ["strategy, phase", "1,000 x 10, ms", "ratio", "wire", "10,000 x 100, ms", "ratio", "wire"]
    assert rows == [["range, first", "2", "0.25", "4.00", "2,000", "250.00", "4.00"]]


def test_a_table_in_markdown_is_aligned() -> None:
    assert markdown(["a", "bc"], [["x", "1"], ["yy", "1,000"]]).splitlines() == [
        "| a  |    bc |",
        "| -- | ----: |",
        "| x  |     1 |",
        "| yy | 1,000 |",
    ]
