"""What is remembered of groups' transitions, and how much."""

from __future__ import annotations

import pytest

from loadwise.coordinator.groups.effects import Transition
from loadwise.coordinator.groups.service.history import History, printable


def transition(reason: str) -> Transition:
    return Transition(before="Empty", after="Stable", generation=1, members=1, reason=reason)


def test_long_ids_do_not_fill_the_memory() -> None:
    history = History(max_bytes=100_000)
    for number in range(2000):
        history.add(f"g{number}", transition("x" * 32_767), now_ms=number)
    kept = [moment for number in range(2000) for moment in history.of(f"g{number}")]
    assert 99_000 < sum(moment.size_bytes for moment in kept) <= 100_000, "as many as there is room for"
    assert kept[-1].group_id == "g1999", "the newest stay"
    assert all(len(moment.transition.reason) < 400 for moment in kept)


def test_one_group_alone_keeps_its_newest_transitions() -> None:
    history = History(max_moments=3, max_bytes=1)
    for number in range(5):
        history.add("g", transition(str(number)), now_ms=number)
    assert [moment.transition.reason for moment in history.of("g")] == ["2", "3", "4"]


@pytest.mark.parametrize("limits", [{"max_groups": 1}, {"max_bytes": 1}])
def test_of_two_groups_one_stays_where_there_is_room_for_one(limits: dict[str, int]) -> None:
    history = History(**limits)
    history.add("a", transition("1"), now_ms=0)
    history.add("b", transition("2"), now_ms=1)
    assert history.of("a") == ()
    assert [moment.transition.reason for moment in history.of("b")] == ["2"]


def test_an_id_with_line_breaks_stays_in_its_line() -> None:
    history = History()
    history.add("g", transition("m\n2026-11-22 INFO forged\r\x1b[31m joined"), now_ms=0)
    (moment,) = history.take_unlogged()
    assert moment.transition.reason == "m\\n2026-11-22 INFO forged\\r\\x1b[31m joined"
    assert printable("größer ✓") == "größer ✓"
