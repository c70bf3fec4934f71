"""``loadwise replay``: a saved history makes its decisions again."""

from __future__ import annotations

from pathlib import Path

from command_line import invoke
from test_history import played

from loadwise.assignor.group_history import GroupHistory


def test_a_history_is_replayed(tmp_path: Path) -> None:
    history = GroupHistory.of(played(20))
    history.save(tmp_path / "group.jsonl")
    called = invoke(["replay", str(tmp_path / "group.jsonl")])
    *decisions, end = called.stdout.splitlines()
    assert [line.partition(" s  ")[2] for line in decisions] == list(history.recorded)
    assert any("asking for a rebalance" in line for line in decisions)
    assert (called.exit_code, end) == (0, f"{len(history.decisions)} decisions, none of them different now")


def test_a_decision_that_is_another_one_now_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "group.jsonl"
    history = GroupHistory.of(played(20))
    history.save(path)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    called = invoke(["replay", str(path)])
    assert called.exit_code == 1
    *_, was, now, end = called.stdout.splitlines()
    assert (was, now) == ("was: no decision", f"now: {history.recorded[-1]}")
    assert end == f"{len(history.decisions)} decisions, 1 of them different now"
