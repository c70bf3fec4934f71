"""``make mutants`` on a toy module, of which each change has a known end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
TOY = """\
def larger(first, second):
    if first > second:
        return first
    return second


LEAST = 3
"""
NEVER_CHANGED = '''
"""No test should notice what is in here: 1 > 2."""

import logging
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    SIZE = 1 + 2
TEXT = f"{3 + 4}"


class Shown:
    def __repr__(self):
        return f"{1 + 2}"

    def check(self, size: Literal[1, 2]) -> Literal[3]:
        logging.warning("more than %d", 1 + 2)
        assert self is not None, 4
        raise ValueError(f"{size} is not {5 + 6}")
'''
TESTS = """\
from toy import LEAST, larger


def test_larger():
    assert larger(2, 1) == 2


def test_least():
    assert LEAST == 3


def test_that_fails_anyway():
    assert LEAST == 4
"""

A_FINDER_THAT_COMES_FIRST = """\
import sys
from importlib.machinery import PathFinder


def pytest_configure():
    sys.meta_path.insert(0, PathFinder)
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(TOY + NEVER_CHANGED)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_toy.py").write_text(TESTS)
    (tmp_path / "tests" / "conftest.py").write_text(A_FINDER_THAT_COMES_FIRST)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


def run(root: Path) -> str:
    command = [sys.executable, RUN, "--root", root, "--folders", "toy.py", "--tests", "tests", "--seed", "1"]
    environment = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the toy needs none, and they take long to import
        "PYTEST_ADDOPTS": "",  # may name options of plugins, or of these tests' own
    }
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True).stdout


def test_killed_survived_and_unreached_changes_are_counted(toy: Path) -> None:
    shown = run(toy)
    assert "| toy.py | 5 | 3 | 1 | 1 | 60 % |" in shown
    assert "toy.py:2 survived, 1 tests\n  - if first > second:\n  + if first >= second:" in shown
    assert "toy.py:4 unreached, 0 tests\n  - return second\n  + return None" in shown
    assert (toy / "toy.py").read_text() == TOY + NEVER_CHANGED
    # What tests reach is kept, but a new file of tests is measured.
    (toy / "tests" / "test_more.py").write_text("from toy import larger\ndef test_more(): assert larger(1, 2) == 2\n")
    assert "| toy.py | 5 | 4 | 1 | 0 | 80 % |" in run(toy)
