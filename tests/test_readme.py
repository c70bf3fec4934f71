"""What the README promises about its own commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from readme import README, programs
from topics import WAIT_S

from benchmarks.readme import PICTURE, kept, picture, table
from loadwise import Coordinator

ROOT = Path(__file__).resolve().parent.parent


def _first_shell_block() -> list[str]:
    block = re.search(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def test_the_first_code_makes_a_consumer_of_each_client() -> None:
    block = re.search(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    assert re.findall(r"(\w+)\(.*assignor=\"weighted\"", block[1]) == [
        "kafka_python_consumer",
        "confluent_consumer",
        "aiokafka_consumer",
    ]
    program = re.sub(r'group_id="billing"', 'group_id="billing", bootstrap_servers="localhost:9092"', block[1])
    with Coordinator({"clicks": 1}).in_thread() as kafka:
        program = program.replace("localhost:9092", kafka.bootstrap_servers)
        program += "\nimport asyncio, os\nasyncio.run(main())\nos._exit(0)\n"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False
        )
    assert done.returncode == 0, done.stderr


def test_the_first_shell_block_is_the_two_commands_that_do_everything() -> None:
    run, test = _first_shell_block()
    makefile = (ROOT / "Makefile").read_text()
    for command in (run, test):
        make, target = command.split()
        assert make == "make"
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_ci_calls_the_readmes_test_command() -> None:
    _, test = _first_shell_block()
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert test in [line.removeprefix("step ") for line in lines], "alone, or by the function that shows the minutes"


def test_the_table_and_the_picture_are_those_of_make_readme() -> None:
    courses = kept()
    assert f"<!-- begin: make readme -->\n{table(courses)}<!-- end -->" in README.read_text()
    assert PICTURE.read_text() == picture(courses)
    assert courses[0].assignor == "weighted", "what the README says of the run"


def test_each_door_has_a_program() -> None:
    assert list(programs()) == ["Share load in my consumers", "Test Kafka code without Docker", "Even Spark tasks"]


@pytest.mark.parametrize("door", ["Share load in my consumers", "Test Kafka code without Docker"])
def test_a_program_prints_what_stands_below_it(door: str) -> None:
    program, output = programs()[door]
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.stdout, done.returncode) == (output, 0), done.stderr
