"""``loadwise demo`` itself, small: what it shows, how it fails, and that it leaves no process behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from topics import WAIT_S, until


@contextmanager
def running(*options: str, html: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "loadwise", "demo", "--no-spark", "--stream-seconds=0", f"--html={html}", *options]
    # Where the tests run in the background of a shell, Ctrl-C is ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as demo:
        signal.signal(signal.SIGINT, before)
        try:
            yield demo
        finally:
            demo.kill()


def topic_of(demo: subprocess.Popen[str]) -> str:
    assert demo.stdout is not None
    assert "you see which consumers fall behind" in demo.stdout.readline()
    first = demo.stdout.readline()
    assert "serves the topic" in first, first + demo.stdout.read()
    return first.split("serves the topic ")[1].split()[0]


def processes_of(topic: str) -> dict[int, str]:
    """The coordinator and the members of a demo: all have the topic, which is like no other, on their command line."""
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True).stdout
    rows = (line.strip().partition(" ") for line in listed.splitlines())
    return {int(pid): command for pid, _, command in rows if topic in command}


@pytest.mark.parametrize(
    "assignors",
    # Each starts four members; the second one adds a column and a chart, which the tests of the page have as well.
    [("weighted",), pytest.param(("cooperative-sticky", "weighted"), marks=pytest.mark.long)],
    ids="-and-".join,
)
def test_all_of_it_small(tmp_path: Path, assignors: tuple[str, ...]) -> None:
    page = tmp_path / "page.html"
    with running("--records=3000", "--rate=3000", *(f"--assignor={each}" for each in assignors), html=page) as demo:
        output, _ = demo.communicate()
    assert demo.returncode == 0, output
    assert "3,000 flights, keyed by carrier" in output
    assert output.startswith("In about 1 minute you see which consumers fall behind: 3,000 flights are drained")
    assert output.splitlines()[-1].startswith("Time to drain the topic: ")
    assert "each at most 3,000 records/s" in output
    assert "Every one of the 3,000 records was processed at least once and committed under each assignor" in output
    assert str(page) in output
    rows: dict[str, list[str]] = {}
    for line in output.splitlines():
        rows.setdefault(line.strip().partition("  ")[0], line.split()[-len(assignors) :])
    for column in range(len(assignors)):
        records = [rows[f"records, member {number}"][column] for number in (1, 2, 3, 4)]
        assert sum(int(each.replace(",", "")) for each in records) >= 3000
    *by_turns, by_load = (float(cell) for cell in rows["max/mean, 3 members"])
    assert by_load < 1.1 < min(by_turns, default=2)
    assert page.read_text(encoding="utf-8").count("<svg") == len(assignors)


@pytest.mark.parametrize(("blow", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_it_leaves_no_process_behind(blow: signal.Signals, status: int, tmp_path: Path) -> None:
    with running("--records=3000", "--rate=100", "--assignor=range", html=tmp_path / "page.html") as demo:
        topic = topic_of(demo)
        until(lambda: len(processes_of(topic)) == 5)  # the coordinator and four members
        demo.send_signal(blow)
        output, _ = demo.communicate(timeout=WAIT_S)
        assert demo.returncode == status, output
        if blow == signal.SIGINT:
            assert processes_of(topic) == {}, "gone before the demo itself is"
        until(lambda: not processes_of(topic))


def test_it_fails_when_a_member_dies_and_says_which(tmp_path: Path) -> None:
    with running("--records=3000", "--rate=100", "--assignor=sticky", html=tmp_path / "page.html") as demo:
        topic = topic_of(demo)
        until(lambda: len(processes_of(topic)) == 5)
        victim = next(pid for pid, command in processes_of(topic).items() if "--client-id=2-aiokafka" in command)
        os.kill(victim, signal.SIGKILL)
        output, _ = demo.communicate(timeout=WAIT_S)
    assert demo.returncode == 1
    assert "sticky: member 2 (aiokafka)" in output
    assert "was killed by signal 9" in output
    assert processes_of(topic) == {}
