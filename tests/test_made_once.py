"""What tests fetch or compile is made by one of their processes: tests/support/made_once.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from made_once import made_once

SUPPORT = Path(__file__).with_name("support")
MAKER = """
import os, sys, time
from pathlib import Path
from made_once import made_once

def make(folder):
    with open("made", "a") as made:
        print(os.getpid(), file=made)
    while not Path("all-here").exists():
        time.sleep(0.01)
    (folder / "it").write_text("complete")

print("here", flush=True)
print((made_once("it", b"content", make) / "it").read_text(), flush=True)
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "loadwise"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_one_of_several_processes_makes_it_and_the_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    command = [sys.executable, "-c", MAKER]
    processes = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [each.stdout.readline() for each in processes] == ["here\n"] * 3
    (tmp_path / "all-here").touch()
    assert [each.communicate()[0] for each in processes] == ["complete\n"] * 3
    assert len((tmp_path / "made").read_text().splitlines()) == 1


def test_it_is_made_for_each_content(cache: Path) -> None:
    made = []
    folders = [made_once("it", content, made.append) for content in (b"a", b"b", b"a")]
    assert folders[0] == folders[2] != folders[1]
    assert len(made) == 2


def test_nothing_is_kept_of_what_failed(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ValueError("half of it")

    with pytest.raises(ValueError, match="half of it"):
        made_once("it", b"content", fail)
    assert not any(each.is_dir() for each in cache.iterdir())
    made_once("it", b"content", lambda folder: (folder / "whole").touch())
    (folder,) = (each for each in cache.iterdir() if each.is_dir())
    assert [each.name for each in folder.iterdir()] == ["whole"]
