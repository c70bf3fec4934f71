"""The speed benchmark runs, with what is there, and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("first", "leave", "unequal", "unequal-leave")


def _benchmark(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "benchmarks.speed", "--sizes", "1000", "--seconds", "0", "--rounds", "1"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_strategy_is_measured_in_every_phase_beside_the_clients_own() -> None:
    text = _benchmark("--no-java", "--strategies", "range,weighted")
    rows = dict(line.strip("| ").split(" | ", 1) for line in text.splitlines() if line.startswith("| "))
    rows = {name.strip(): row for name, row in rows.items()}
    assert all(f"{strategy}, {phase}" in rows for strategy, phase in product(("range", "weighted"), PHASES))
    ours, _bare, java, _, server, _, kafka_python, ratio, *_ = (
        cell.strip() for cell in rows["range, first"].split("|")
    )
    assert float(ours) > 0
    assert (java, server) == ("", "")
    assert float(ratio) > 0
    assert abs(float(ours) / float(kafka_python) - float(ratio)) < 0.02 * (1 + float(ratio))


def test_without_java_it_says_what_to_install_and_goes_on() -> None:
    text = _benchmark("--no-python", "--strategies", "range", "--phases", "first", PATH="")
    assert "apt-get install openjdk-17-jdk-headless maven" in text
    assert "range, first" in text
