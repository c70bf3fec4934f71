"""A group's watch is told events; a record of them makes the same decisions again."""

from types import SimpleNamespace

import numpy as np
import pytest

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.live.events import Asked, Assigned, Joined, PriorEnds, Read, Rebalancing, Said
from loadwise.assignor.live.history import History, Recorder, replay
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import Assignment, GroupSnapshot, Member
from loadwise.protocol.live_notes import Memory

NAMES, PARTITIONS = "ab", 8


def played(readings, partitions=PARTITIONS):
    """Two members, of which one is overloaded after a while and asks for rebalances."""
    recorder = Recorder(GroupWatch(LiveSettings(), Weighted(), slack_s=1.0))
    group = GroupSnapshot.of([Member(id=name, topics=["t"]) for name in NAMES], {"t": partitions})
    half = Assignment(group, np.repeat([0, 1], partitions // 2).astype(np.int32))
    recorder.handle(Joined(at_ms=0, said={name: Said(learned_per_s=900.0) for name in NAMES}, memory=Memory()))
    recorder.handle(PriorEnds(at_ms=-60_000, ends={("t", number): 0 for number in range(partitions)}))
    recorder.handle(Assigned(at_ms=1000, target=half, generation=1, duration_ms=100))
    end, rng = np.full(partitions, 6000.0), np.random.default_rng(0)
    rows = [("t", number) for number in range(partitions)]
    for number in range(1, readings + 1):
        at_ms = 5000 * number
        rate = np.where(np.arange(partitions) < 3, 300.0, 20.0) if number > 10 else np.full(partitions, 100.0)
        end = end + rng.poisson(rate * 5)
        behind = np.where(np.arange(partitions) < 3, 100.0 * max(number - 10, 0), 0.0)
        positions = np.column_stack([end, behind, np.ones(partitions), np.full(partitions, np.inf)])
        said = {name: Said(per_s=900.0, written_ms=at_ms - 500) for name in NAMES}
        decision = recorder.handle(Read(at_ms=at_ms, partitions=rows, positions=positions, said=said))
        if decision is not None and decision.ask:
            recorder.handle(Asked(at_ms=at_ms))
            recorder.handle(Rebalancing(at_ms=at_ms + 100))
            recorder.handle(Assigned(at_ms=at_ms + 300, target=half, generation=2, duration_ms=200))
    return recorder.history()


def lines(decisions):
    return [f"{each.now_ms} {each.ask} {each.wanted} {each}" for each in decisions]


@pytest.mark.parametrize("readings", [30, 330])
def test_the_same_events_make_the_same_decisions(readings):
    history = played(readings)
    assert any(decision.ask for decision in history.decisions)
    assert lines(replay(history)) == lines(history.decisions)
    assert lines(replay(history)) == lines(history.decisions), "a replay changes nothing in the history"


def test_of_a_group_that_is_too_large_nothing_is_kept():
    history = played(2, partitions=20_000)
    assert history == History(start=None) or not history.events
    assert list(replay(history)) == []


class Watch:
    """A watch over so many partitions that decides nothing, or makes decisions over so many."""

    def __init__(self, size=0, decided=0):
        group = SimpleNamespace(size=decided)
        self.knowledge = SimpleNamespace(size=size)
        self.decision = SimpleNamespace(judgement=SimpleNamespace(group=group)) if decided else None

    def handle(self, event):
        return self.decision if isinstance(event, Read) else None


@pytest.mark.parametrize(
    ("readings", "watch", "read_bytes", "kept"),
    [
        (200, Watch(), 8, 200),
        (201, Watch(), 8, 101),
        (8, Watch(), 1_000_000, 8),  # four megabytes in each part
        (9, Watch(), 1_000_000, 5),
        (6, Watch(size=2000), 1_000_000, 6),  # one of them is that of the watch before it
        (7, Watch(size=2000), 1_000_000, 4),
        (8, Watch(decided=125_000), 0, 8),
        (9, Watch(decided=125_000), 0, 5),
        (1, Watch(size=7999), 0, 1),
        (1, Watch(size=8000), 0, 0),
    ],
)
def test_a_history_has_two_parts_of_a_hundred_readings_and_four_megabytes(readings, watch, read_bytes, kept):
    recorder, positions = Recorder(watch), np.zeros(read_bytes // 8)
    for number in range(readings):
        recorder.handle(Asked(at_ms=number))
        recorder.handle(Read(at_ms=number, partitions=[], positions=positions))
    history = recorder.history()
    assert [event.at_ms for event in history.events if isinstance(event, Read)] == [*range(readings)][readings - kept :]
    assert (history.start is None) is (kept == 0)
