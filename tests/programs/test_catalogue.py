"""The catalogue of programs, and the page that is made of it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from catalogue import HERE, Program, Step, programs
from installers import INSTALLERS, JAVA_CLASSES, SOURCES
from progress import Progress
from run import PAGE, before, chosen, of_one_run, with_rows
from steps import failure

PROGRAMS = list(programs())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_an_entry_names_what_there_is(program: Program) -> None:
    scripts = {line.split()[0] for line in JAVA_CLASSES.read_text().splitlines()}
    commands = " ".join(step.run for step in program.steps)
    assert program.install.keys() <= INSTALLERS.keys()
    assert set(re.findall(r"\b(?:kafka|connect)-[a-z0-9-]+\.sh\b", commands)) <= scripts
    assert all((SOURCES / name).exists() for name in re.findall(r"\$SOURCES/([\w.]+)", commands))
    assert all((SOURCES / program.install[kind]).is_dir() for kind in ("cargo", "go_source") if kind in program.install)
    assert "maven" not in program.install or (HERE / program.install["maven"]).exists()
    assert any(step.sees for step in program.steps)
    for step in program.steps:
        for pattern in step.sees:
            re.compile(pattern)


def test_each_program_has_a_name_of_its_own_that_a_table_can_hold() -> None:
    names = [program.name for program in PROGRAMS]
    assert len(set(names)) == len(names) >= 40
    assert not [each for each in PROGRAMS if "|" in each.name + each.does]


def test_the_page_tells_of_all_programs_and_of_no_other() -> None:
    assert [name for name in before() if name != "program"] == [program.name for program in PROGRAMS]


def test_a_run_of_some_programs_keeps_what_the_page_tells_of_the_others() -> None:
    told = PAGE.read_text().splitlines()
    shown = with_rows({PROGRAMS[0].name: ["yes", "wonderful"]}).splitlines()
    changed = [line for line in shown if line.startswith("| ") and line not in told]
    assert len(changed) == 1
    assert "wonderful" in changed[0]
    (again,) = [line for line in shown if line.startswith("Run again since then: ")]
    assert PROGRAMS[0].name in again
    assert next(line for line in shown if line.startswith("All were run ")) in told


def test_a_run_of_all_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "run.json"
    first = Progress.of(path, "2026-11-22")
    for program in PROGRAMS[:-1]:
        first.add(path, program.name, ["yes", "no"], 60.0)
    second = Progress.of(path, "2026-11-23")
    assert second == first
    assert chosen((), second) == [PROGRAMS[-1]]
    second.add(path, PROGRAMS[-1].name, ["yes", "yes"], 0.0)
    shown = of_one_run(second)
    assert f"All were run one after the other on 2026-11-22, which took {len(PROGRAMS) - 1} minutes." in shown
    assert f"{len(PROGRAMS)} work on Apache Kafka and 1 on the coordinator" in shown


STEPS = [
    ([Step(run="echo $NAME", sees=("^a-program-",))], None),
    ([Step(run="echo one", sees=("one", "two"))], "did not print: two"),
    ([Step(run="echo no; false")], "ended with 1"),
    ([Step(run="test -e done || { touch done; false; }", again=True)], None),
    (
        [Step(run="echo up; exec sleep 100", background=True, sees=("up",)), Step(run="echo $BROKER", sees=("b:1",))],
        None,
    ),
    ([Step(run="false", background=True, sees=("up",))], "ended with 1"),
    ([Step(run="sleep 100", within_s=0)], "took longer than 0 s"),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="steps are run by bash")
@pytest.mark.parametrize(("steps", "problem"), STEPS)
def test_what_a_step_shows_is_what_is_told(steps: list[Step], problem: str | None, tmp_path: Path) -> None:
    program = Program(name="A program", does="", install={}, steps=tuple(steps))
    told = failure(program, "b:1", {"PATH": "/usr/bin:/bin"})
    assert (told is None) if problem is None else (told is not None and problem in told)
