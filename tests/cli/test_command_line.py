"""What every command line is expected to have: short options for help and version, and completion in the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import loadwise
from loadwise.cli.app import app
from loadwise.installation import pip_install


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version(option: str) -> None:
    assert CliRunner().invoke(app, [option]).stdout == f"loadwise {loadwise.__version__}\n"


@pytest.mark.parametrize("command", [[], ["assign"], ["compare"], ["demo"], ["loads"]])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(command: list[str], option: str) -> None:
    shown = CliRunner().invoke(app, [*command, option])
    assert shown.exit_code == 0
    assert " ".join(["Usage:", "loadwise", *command]).replace("loadwise", "root", 1) in shown.stdout


@pytest.mark.parametrize(("words", "completed"), [("loadwise com", "compare"), ("loadwise compare --sc", "--scenario")])
def test_bash_completes_commands_and_options(words: str, completed: str) -> None:
    asked = {"_LOADWISE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    command = str(Path(sys.executable).with_name("loadwise"))
    done = subprocess.run([command], capture_output=True, text=True, check=True, env={**os.environ, **asked})
    assert done.stdout.split() == [completed]


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_its_libraries_the_command_tells_how_to_get_them(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from loadwise.cli import main; main()"
    ran = subprocess.run([sys.executable, "-c", program, "compare"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.strip() == (
        f"the command loadwise needs {missing}, which is not installed; get it with: {pip_install('cli')}"
    )
