"""A history of a group as a file."""

import json

import numpy as np
import pytest
from test_history import lines, played

from loadwise.assignor.errors import BadHistoryError
from loadwise.assignor.group_history import GroupHistory
from loadwise.assignor.live.history import History


@pytest.mark.parametrize("readings", [1, 30, 120])
def test_a_file_makes_the_same_decisions_again(readings, tmp_path):
    history = GroupHistory.of(played(readings))
    history.save(tmp_path / "group.jsonl")
    again = GroupHistory.load(tmp_path / "group.jsonl")
    assert lines(again.decisions) == lines(history.decisions)
    assert again.recorded == history.recorded == tuple(map(str, history.decisions))
    assert list(again.differences()) == []
    again.save(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "group.jsonl").read_text()


def test_a_decision_that_is_another_one_now_is_a_difference(tmp_path):
    history = GroupHistory.of(played(20))
    path = tmp_path / "group.jsonl"
    history.save(path)
    path.write_text(path.read_text().replace(history.recorded[-1].split(";")[0], "Generation 1: asleep"))
    [*_, (then, now)] = GroupHistory.load(path).differences()
    assert then.startswith("Generation 1: asleep")
    assert now == history.recorded[-1]


def test_a_group_that_nobody_watched_has_an_empty_history(tmp_path):
    GroupHistory.of(History(start=None)).save(tmp_path / "empty.jsonl")
    assert GroupHistory.load(tmp_path / "empty.jsonl").decisions == ()


def first_line(start):
    return json.dumps({"loadwise": 1, "start": start})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"file.jsonl is not a history of a group: its first line has no \"loadwise\"; write one with consumer"),
        ("{}", "its first line has no"),
        ("[]", "its first line has no"),
        ("not JSON", "file.jsonl is not a history of a group: line 1 is not JSON"),
        ('{"loadwise": 1, "start": null}\n{"event":', "line 2 is not JSON"),
        ('{"loadwise": 1}', "file.jsonl is damaged, or another version of loadwise wrote it$"),
        ('{"loadwise": 1, "start": null}\n7', "file.jsonl is damaged"),
        (json.dumps({"loadwise": 2, "start": None}), "has the format 2; this version reads 1"),
        (first_line({"!": "posix:system", "of": {}}), "posix:system is not a class of a history"),
        (
            first_line({"!": "loadwise.assignor.live.history:copy.deepcopy", "of": {}}),
            "deepcopy is not a class of a history",
        ),
        (first_line({"!": "loadwise.assignor.live.history:Recorder.handle", "of": {}}), "not a class of a history"),
        (first_line({"!": "loadwise.assignor.live.history:replay", "of": {}}), "replay is not a class of a history"),
        (first_line({"!": "loadwise.assignor.live.work:Counter", "of": {}}), "Counter is not a class of a history"),
        (first_line({"!": "own.assignors:Fair", "of": {}}), "only loadwise's own assignors can be replayed"),
    ],
)
def test_any_other_file_is_refused_and_calls_nothing(text, reason, tmp_path):
    (tmp_path / "file.jsonl").write_text(text)
    with pytest.raises(BadHistoryError, match=reason):
        GroupHistory.load(tmp_path / "file.jsonl")


def test_numbers_come_back_as_they_were(tmp_path):
    history = played(3)
    history.start.tried = [
        np.array([[0.1, np.nan], [np.inf, -0.0]]),
        np.float32(0.1),
        float("-inf"),
        (1, frozenset("ab")),
    ]
    GroupHistory.of(history).save(tmp_path / "group.jsonl")
    array, number, low, pair = GroupHistory.load(tmp_path / "group.jsonl").start.tried
    np.testing.assert_array_equal(array, history.start.tried[0])
    assert (type(number), number, low, pair) == (np.float32, np.float32(0.1), float("-inf"), (1, frozenset("ab")))
