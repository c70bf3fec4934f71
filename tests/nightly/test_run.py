"""``make nightly`` with scenes that take no time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace

import pytest
from figures import Figure, Row, lines, values

SPEC = importlib.util.spec_from_file_location("nightly_run", Path(__file__).with_name("run.py"))
nightly = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(nightly)

LIVE = ["tests/live/test_bad.py::test_bad[apache-clocks]", "tests/live/test_shift.py::test_drift[apache]"]
LIVE += ["tests/live/test_shift.py::test_drift[loadwise]", "tests/live/test_shift.py::test_slow[apache]"]
LONG = ["tests/balance/test_a.py::test_a", "tests/balance/test_b.py::test_b", "tests/protocol/x/test_c.py::test_c"]
NAMES = ["bad", "drift", "slow", "long/balance", "long/protocol", "upstream"]


@pytest.fixture
def played(tmp_path, monkeypatch):
    """``played(*arguments)`` plays in an empty folder, and returns what make was asked for."""
    (tmp_path / "docs" / "lab").mkdir(parents=True)
    monkeypatch.setattr(nightly, "ROOT", tmp_path)
    monkeypatch.setattr(nightly, "commit", lambda: played.commit)
    monkeypatch.setattr(nightly, "collected", lambda marks: LIVE if marks == "live" else LONG)
    monkeypatch.chdir(tmp_path)

    def make(command, **_):
        _, target, _, *tests = command
        played.asked.append(target)
        if tests:
            options = dict(word.removeprefix("--").split("=") for word in tests[0].removeprefix("TESTS=").split()[1:])
            if target == "test-live":
                Path(options["figures"]).write_text(lines([Row("drift[apache]", Figure("lag, s", played.lag_s, 30))]))
            suite = f'<testsuites><testsuite tests="3" failures="{played.failures}" errors="0"/></testsuites>'
            Path(options["junitxml"]).write_text(suite)
        return CompletedProcess(command, played.code)

    monkeypatch.setattr(nightly.subprocess, "run", make)

    def played(*arguments):
        played.asked = []
        monkeypatch.setattr(sys, "argv", ["run.py", "--long", "long", *arguments])
        nightly.main()
        return played.asked

    played.commit, played.lag_s, played.failures, played.code = "abc", 17.0, 0, 0
    return played


def page():
    (kept,) = Path("docs", "lab").glob("nightly-*.md")
    return kept.read_text()


def test_live_scenes_are_played_by_test_and_the_long_tier_by_folder():
    assert [scene.name for scene in nightly.scenes(LIVE, LONG)] == NAMES


def test_a_run_plays_everything_and_keeps_its_table(played):
    assert played() == ["test-live"] * 3 + ["test-long"] * 2 + ["test-upstream"]
    assert "| drift[apache] | lag, s | 17 |  | 30 | yes |" in page()
    assert [scene for scene, name in values(page()) if name == "failed tests"] == NAMES


def test_a_table_shows_the_values_of_the_run_before(played):
    played()
    played.lag_s = 18.5
    played()
    assert "| drift[apache] | lag, s | 18.5 | 17 | 30 | yes |" in page()
    assert page().count("# Nightly runs") == 1


def test_a_run_goes_on_with_a_scene(played):
    played()
    played.lag_s = 18.5
    assert played("--from", "long/protocol") == ["test-long", "test-upstream"]
    assert page().count("| drift[apache] | lag, s | 17 |") == 2 * 3
    assert played("--from", "slow[apache]") == ["test-live", "test-long", "test-long", "test-upstream"]
    assert page().count("| drift[apache] | lag, s | 18.5 |") == 1


def test_a_run_does_not_go_on_with_figures_of_another_commit(played):
    with pytest.raises(SystemExit, match="no run has begun in build/nightly"):
        played("--from", "slow")
    played()
    played.commit = "def"
    with pytest.raises(SystemExit, match="began on abc, but this is def"):
        played("--from", "slow")


def test_some_scenes_alone_keep_no_table_and_leave_a_run_alone(played):
    played()
    before = page()
    assert played("slow", "upstream") == ["test-live", "test-upstream"]
    assert page() == before
    assert played("--from", "upstream") == ["test-upstream"]


def test_an_unknown_scene_is_refused(played):
    with pytest.raises(SystemExit, match="there is no scene 'drifts'; take one of: bad, drift, slow"):
        played("--from", "drifts")


@pytest.mark.parametrize(
    ("wrong", "row"),
    [
        ({"lag_s": 30.1}, "| drift[apache] | lag, s | 30.1 |  | 30 | **no** |"),
        ({"failures": 2, "code": 1}, "| drift | failed tests | 2 |  | 0 | **no** |"),
        ({"code": 2}, "| upstream | failed tests | 1 |  | 0 | **no** |"),
    ],
)
def test_a_missed_limit_fails_the_run(played, wrong, row):
    for name, value in wrong.items():
        setattr(played, name, value)
    with pytest.raises(SystemExit, match="figures are above their limits") as ended:
        played()
    assert row in page()
    assert row in str(ended.value)


def test_a_run_has_two_hours(played, monkeypatch):
    clock = iter(range(0, 100_000, 20 * 60 + 1))
    monkeypatch.setattr(nightly, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(SystemExit, match=r"\| all scenes \| minutes \| 120.1 \|  \| 120 \| \*\*no\*\* \|"):
        played()
