"""The speed benchmark runs, with what is there, and says what is missing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from benchmarks.speed.cases import Size
from benchmarks.speed.measure import JAVA, OURS, Cell
from benchmarks.speed.page import BARE, growth, lines

ROOT = Path(__file__).resolve().parents[2]
PHASES = ("first", "leave", "unequal", "unequal-leave")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


def _benchmark(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "-m", "benchmarks.speed", "--sizes", "1000", "--seconds", "0", "--rounds", "1"]
    done = subprocess.run(
        [*command, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_strategy_is_measured_in_every_phase_beside_the_clients_own(page: Path) -> None:
    text = _benchmark("--no-java", "--strategies", "range,weighted", "--html", str(page))
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
    html = page.read_text(encoding="utf-8")
    pictures = re.findall(r"<svg .*? aria-label=\"(range|weighted), ([\w-]+): loadwise .*?</svg>", html, re.DOTALL)
    assert pictures == [*product(("range", "weighted"), PHASES)]
    assert re.search(rf"<td[^>]*>{re.escape(ours)}</td>", html)


def test_a_picture_has_a_line_a_runner_and_one_that_grows_as_the_partitions_do() -> None:
    sizes = [Size(10**power, 10, 10) for power in (3, 4, 6)]
    cells = [
        Cell(runner, "range", "first", size, {"names": size.partitions**1.5 * 1e-8, "bare": 1e-4}, 0, 0)
        for size in reversed(sizes)
        for runner in (OURS, JAVA)
    ]
    [series] = lines(cells).values()
    assert {runner: [size for size, _ in points] for runner, points in series.items()} == {
        OURS: [1e3, 1e4, 1e6], BARE: [1e3, 1e4, 1e6], JAVA: [1e3, 1e4, 1e6],
    }  # fmt: skip
    drawn = re.findall(r'<polyline class="(\w+)" points="(.*?)"', growth("range, first", series))
    places = {kind: [[float(n) for n in point.split(",")] for point in points.split()] for kind, points in drawn}
    assert places.keys() == {"guide", "r0", "r1", "r2"}

    def slope(kind: str) -> float:
        (x, y), *_, (last_x, last_y) = places[kind]
        return (y - last_y) / (last_x - x)

    # From 0.3 ms at 1,000 to 10 s at 1,000,000: the axes have three decades and six, and the line has slope 1.5.
    assert abs(slope("r0") / slope("guide") - 1.5) < 0.01
    assert slope("r1") == 0


def test_without_java_it_says_what_to_install_and_goes_on(page: Path) -> None:
    text = _benchmark("--no-python", "--strategies", "range", "--phases", "first", "--html", str(page), PATH="")
    assert "apt-get install openjdk-17-jdk-headless maven" in text
    assert "range, first" in text
