"""Forked programs tell tests what processes started anew do: what they write, and what they end with."""

from __future__ import annotations

import signal

import pytest
from forked import Forked

PROGRAM = """
import sys

print(__name__, sys.argv[1:], "loadwise.assignor.clients.kafka_python.consumer" in sys.modules, flush=True)
for line in sys.stdin:
    print(line.strip(), file=sys.stderr, flush=True)
    print("read", flush=True)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    running = Forked(str(tmp_path / "program.py"), ["3", "more"], tmp_path / "log")
    yield running
    running.kill()
    running.wait()
    running.stdin.close()
    running.stdout.close()


def test_it_is_a_program_that_has_its_imports_already(program):
    assert program.stdout.readline() == "__main__ ['3', 'more'] True\n"
    assert program.poll() is None


def test_it_ends_by_itself_when_its_input_does(program, tmp_path):
    program.stdin.write("to the log\n")
    program.stdin.close()
    assert program.wait(90) == program.returncode == 3
    assert program.stdout.read().endswith("read\n")
    assert (tmp_path / "log").read_text() == "to the log\n"


def test_a_signal_ends_it(program):
    program.send_signal(signal.SIGSTOP)
    program.kill()
    assert program.wait(90) == -signal.SIGKILL
    program.kill()
