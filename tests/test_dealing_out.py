"""The files that tests/support/crashed_once.py names are there, and are those that it takes them for."""

from __future__ import annotations

import re
from pathlib import Path

from crashed_once import EARLY, SPARK_SESSION, WITH_A_SESSION

ROOT = Path(__file__).parents[1]
USES_THE_SESSION = re.compile(r"^def \w+\((?:[^()]*[ ,])?spark[,):]", re.MULTILINE)


def test_what_comes_early_is_there() -> None:
    assert [file for file in EARLY if file != SPARK_SESSION and not (ROOT / file).is_file()] == []


def test_who_needs_the_spark_session_is_with_the_others() -> None:
    found = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "tests").rglob("test_*.py")
        if USES_THE_SESSION.search(file.read_text())
    }
    assert found == set(WITH_A_SESSION)
