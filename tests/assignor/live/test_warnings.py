"""What a leader's log warns of: each thing once, for as long as it lasts."""

from types import SimpleNamespace

from loadwise.assignor.live.warnings import Warnings

SECOND_MS = 1_000


def decision(second, *, missing=0, waiting=False, exhausted=False, overfull=None):
    class Shown(SimpleNamespace):
        def __str__(self):
            return "waits"

    return Shown(
        now_ms=second * SECOND_MS,
        missing=missing,
        waiting=waiting,
        exhausted=exhausted,
        overfull=overfull,
        too_small="too small",
        too_heavy="too heavy",
    )


def told(*decisions):
    warnings = Warnings()
    return [list(warnings.news(each)) for each in decisions]


def test_a_group_that_is_too_small_is_warned_of_once_until_it_suffices():
    news = told(decision(0, missing=1), decision(2, missing=2), decision(4), decision(6, missing=1))
    assert news == [["too small"], [], [], ["too small"]]


def test_a_wait_is_told_once_and_a_rebalance_too_many_each_time():
    waits = [decision(second, waiting=True) for second in (0, 2)]
    assert told(*waits, decision(4), decision(6, waiting=True)) == [["waits"], [], [], ["waits"]]
    assert told(decision(0, exhausted=True), decision(2, exhausted=True)) == [["waits"], ["waits"]]


def test_a_partition_is_too_heavy_once_it_has_been_so_for_half_a_minute():
    heavy = [decision(second, overfull=(("t", 0), 2.0)) for second in (0, 28, 30, 32, 90)]
    assert told(*heavy) == [[], [], ["too heavy"], [], []]
    burst = [
        decision(second, overfull=overfull) for second, overfull in ((0, 1), (20, None), (40, 1), (60, 1), (70, 1))
    ]
    assert told(*burst) == [[], [], [], [], ["too heavy"]]
