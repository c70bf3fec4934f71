"""The speed benchmark runs, with what is there, and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.markdown import markdown
from benchmarks.speed.cases import Size
from benchmarks.speed.measure import JAVA, MEMORY, OURS, SERVER
from benchmarks.speed.table import table

ROOT = Path(__file__).resolve().parents[2]
SMALL, LARGE = Size(1_000, 10, 10), Size(10_000, 100, 100)


def test_without_java_a_strategy_is_measured_in_every_phase_and_java_is_said_to_be_missing() -> None:
    command = [sys.executable, "-m", "benchmarks.speed", "--sizes", "1000", "--seconds", "0", "--rounds", "1"]
    command += ["--strategies", "range,weighted"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "apt-get install openjdk-17-jdk-headless maven" in done.stdout
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if "|" in line]
    assert [row[0] for row in rows[2:]] == ["range, first", "range, leave", "weighted, first", "weighted, leave"]
    assert all(float(row[1]) > 0 and row[2:5] == [""] * 3 and float(row[5]) > 0 for row in rows[2:])


def test_the_table_has_our_time_and_its_ratio_to_javas() -> None:
    java = {(JAVA, "names"): 0.008, (JAVA, "wire"): 0.001, (SERVER, "names"): 0.001}
    found = {
        size: {"range, first": {(OURS, "names"): seconds, (OURS, "wire"): 0.004, (OURS, MEMORY): 1200.4, **java}}
        for size, seconds in ((SMALL, 0.002), (LARGE, 2.0))
    }
    heads, rows = table(found)
    assert heads[:6] == ["strategy, phase", "1,000 x 10, ms", "ratio", "wire", "server", "MiB"]
    small, large = ["2", "0.25", "4.00", "2.00", "1,200"], ["2,000", "250.00", "4.00", "2000.00", "1,200"]
    assert rows == [["range, first", *small, *large]]


def test_a_table_in_markdown_is_aligned() -> None:
    assert markdown(["a", "bc"], [["x", "1"], ["yy", "1,000"]]).splitlines() == [
        "| a  |    bc |",
        "| -- | ----: |",
        "| x  |     1 |",
        "| yy | 1,000 |",
    ]
