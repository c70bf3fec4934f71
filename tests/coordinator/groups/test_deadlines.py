from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator.groups.deadlines import Deadlines

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), st.none() | st.integers(0, 50)),
        st.tuples(st.just("postpone"), st.integers(0, 5), st.integers(0, 50)),
        st.tuples(st.just("due"), st.just(0), st.integers(0, 60)),
    ),
    max_size=200,
)


@given(CHANGES)
def test_they_agree_with_a_plain_dict(changes: list[tuple[str, int, int | None]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    plain: dict[int, int] = {}
    for change, key, at_ms in changes:
        if change == "set":
            deadlines.set(key, at_ms)
            plain.pop(key, None)
            if at_ms is not None:
                plain[key] = at_ms
        elif change == "postpone":
            assert at_ms is not None
            before_ms = deadlines.next_ms
            may_be = key in plain and plain[key] <= at_ms
            assert deadlines.postpone(key, at_ms) == may_be
            assert deadlines.next_ms == before_ms
            if may_be:
                plain[key] = at_ms
        else:
            assert at_ms is not None
            due = deadlines.due(at_ms)
            assert sorted(due) == sorted(key for key, each in plain.items() if each <= at_ms)
            assert [plain[key] for key in due] == sorted(plain[key] for key in due), "earliest first"
            plain = {key: each for key, each in plain.items() if each > at_ms}
            assert deadlines.next_ms is None or deadlines.next_ms > at_ms, "what moved is placed anew"
        assert (deadlines.next_ms is None) == (not plain)
        assert deadlines.next_ms is None or deadlines.next_ms <= min(plain.values())


def test_moving_one_deadline_for_ever_takes_no_memory() -> None:
    deadlines: Deadlines[str] = Deadlines()
    for at_ms in (*range(10_000), *range(10_000, 0, -1), *range(10_000)):
        deadlines.set("session", at_ms)
    assert len(deadlines._heap) < 100
    assert deadlines.due(9_999) == ["session"]


def test_of_equals_the_one_that_was_set_first_is_due_first() -> None:
    deadlines: Deadlines[object] = Deadlines()
    keys = [object() for _ in range(5)]
    for key in keys:
        deadlines.set(key, 7)
    assert deadlines.due(7) == keys
