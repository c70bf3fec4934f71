"""What the README promises about its own commands."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _first_shell_block() -> list[str]:
    block = re.search(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert block is not None
    return block[1].splitlines()


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
    assert test in [line.removeprefix("once_more ") for line in lines], (
        "alone, or by the function that repeats what failed"
    )
