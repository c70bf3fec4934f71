"""Plays all live scenes and the whole long tier, and keeps their figures in a table of the day in ``docs/lab``.

``make nightly`` plays everything, which may take two hours. ``make nightly NIGHTLY="--from drift"`` goes on with a
scene, and keeps the rows of those before it. ``make nightly NIGHTLY="drift slow"`` plays these alone, and writes no
table to ``docs/lab``. Exits with 1 if a limit was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from figures import Figure, Row, lines, rows, table, values  # noqa: E402

KEPT = Path("docs", "lab")
LIMIT_MINUTES = 120
NO_TESTS = 5
"""pytest's exit code if it has collected none."""


class Scene(NamedTuple):
    """A part of a run, which is played as a whole."""

    name: str
    target: str
    """The target of make."""
    tests: str
    """What pytest takes; nothing if the target is no run of pytest."""


def scenes(live: Iterable[str], long: Iterable[str]) -> list[Scene]:
    """All scenes in their order, for the ids of the tests in both tiers: live ones by test, long ones by folder."""
    functions = dict.fromkeys(test.partition("[")[0] for test in live)
    folders = dict.fromkeys(test.partition("::")[0].split("/")[1] for test in long)
    return [
        *(Scene(test.rpartition("::test_")[2], "test-live", test) for test in functions),
        *(Scene(f"long/{folder}", "test-long", f"tests/{folder}") for folder in folders),
        Scene("upstream", "test-upstream", ""),
    ]


def place(name: str, among: Sequence[Scene]) -> int:
    """The place of a scene, by its own name or by that of a row in the table, such as ``drift[apache-mixed]``."""
    names = [scene.name for scene in among]
    if (found := name.partition("[")[0]) in names:
        return names.index(found)
    raise SystemExit(f"there is no scene {name!r}; take one of: {', '.join(names)}")


class Run:
    """A run and its folder, which keeps the rows of each scene, so that another call can go on."""

    def __init__(self, folder: Path, about: dict[str, Any]) -> None:
        self._folder, self.about = folder, about
        """The day and time when it began, the commit, the machine's load and the seed."""

    @classmethod
    def begun(cls, folder: Path) -> Run:
        """A run without rows."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        now, load = datetime.now(UTC), round(os.getloadavg()[0], 1)
        about = {"day": f"{now:%Y-%m-%d}", "at": f"{now:%H:%M}", "load": load, "seed": int(now.timestamp())}
        about["commit"] = commit()
        (folder / "run.json").write_text(json.dumps(about))
        return cls(folder, about)

    @classmethod
    def continued(cls, folder: Path) -> Run:
        """The run that was begun in this folder, on this commit."""
        if not (folder / "run.json").exists():
            raise SystemExit(f"no run has begun in {folder}: leave --from out")
        run = cls(folder, json.loads((folder / "run.json").read_text()))
        if run.about["commit"] != commit():
            raise SystemExit(f"the run began on {run.about['commit']}, but this is {commit()}: leave --from out")
        return run

    def _rows(self, scene: Scene) -> Path:
        return self._folder / f"{scene.name.replace('/', '-')}.jsonl"

    def forget(self, scene: Scene) -> None:
        self._rows(scene).unlink(missing_ok=True)

    def play(self, scene: Scene) -> None:
        """Play a scene, and keep its figures, how many of its tests failed, and how long it took."""
        figures, report = self._folder / "figures", self._folder / "report.xml"
        for file in (figures, report):
            file.unlink(missing_ok=True)
        command = ["make", scene.target, f"SEED={self.about['seed']}"]
        if scene.tests:
            command.append(f"TESTS={scene.tests} --figures={figures} --junitxml={report}")
        began = time.monotonic()
        code = subprocess.run(command, env=os.environ | {"LOADWISE_REQUIRE_KAFKA": "1"}, check=False).returncode
        minutes = (time.monotonic() - began) / 60
        measured = rows(figures.read_text()) if figures.exists() else []
        failed = failures(report) or int(code not in {0, NO_TESTS})
        measured += [Row(scene.name, Figure("failed tests", failed, 0)), Row(scene.name, Figure("minutes", minutes))]
        self._rows(scene).write_text(lines(measured))

    def measured(self, among: Iterable[Scene]) -> list[Row]:
        """The rows of those scenes that were played, and how long all took together."""
        played = [self._rows(scene) for scene in among if self._rows(scene).exists()]
        found = [row for file in played for row in rows(file.read_text())]
        minutes = sum(row.figure.value for row in found if row.figure.name == "minutes")
        return [*found, Row("all scenes", Figure("minutes", minutes, LIMIT_MINUTES))]


def collected(marks: str) -> list[str]:
    """The ids of the tests with these marks."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", marks]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in {0, NO_TESTS}:
        raise SystemExit(f"pytest cannot collect the tests marked {marks}:\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def commit() -> str:
    """The commit that is checked out, with ``-dirty`` if files have changed since."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def failures(report: Path) -> int:
    """How many tests failed, by pytest's report; 0 if it has written none."""
    if not report.exists():
        return 0
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    return sum(int(suite.get(kind, 0)) for suite in suites for kind in ("failures", "errors"))


def keep(about: dict[str, Any], measured: Sequence[Row]) -> Path:
    """Append the table to the page of the day."""
    page = KEPT / f"nightly-{about['day']}.md"
    earlier = [values(each.read_text()) for each in sorted(KEPT.glob("nightly-*.md"))]
    before = {key: value for each in earlier for key, value in each.items()}
    head = (
        ""
        if page.exists()
        else f"# Nightly runs of {about['day']}\n\nBy `make nightly`. *Before*: the run before it.\n"
    )
    machine = f"{os.cpu_count()} cores, load average {about['load']} at the start"
    section = f"## {about['at']} UTC\n\nCommit {about['commit']}; {machine}; seed {about['seed']}.\n"
    with page.open("a", encoding="utf-8") as output:
        output.write(f"{head}\n{section}\n{table(measured, before)}")
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", required=True, metavar="MARKS", help="the marks of the long tier")
    parser.add_argument("--from", dest="since", metavar="SCENE", help="go on with this scene")
    parser.add_argument("only", nargs="*", metavar="SCENE", help="play these alone")
    given = parser.parse_args()
    os.chdir(ROOT)
    everything = scenes(collected("live"), collected(given.long))
    chosen = [everything[place(name, everything)] for name in given.only]
    if chosen:
        run = Run.begun(Path("build", "some-scenes"))
    else:
        chosen = everything[place(given.since, everything) if given.since else 0 :]
        folder = Path("build", "nightly")
        run = Run.continued(folder) if given.since else Run.begun(folder)
    for scene in chosen:
        run.forget(scene)
    for number, scene in enumerate(chosen, 1):
        print(f"{scene.name}, {number} of {len(chosen)}", flush=True)
        run.play(scene)
    measured = run.measured(everything)
    print(table(measured))
    if not given.only:
        print(f"The table is kept in {keep(run.about, measured)}.")
    if missed := [row for row in measured if not row.figure.ok]:
        raise SystemExit(f"{len(missed)} of {len(measured)} figures are above their limits:\n{table(missed)}")


if __name__ == "__main__":
    main()
