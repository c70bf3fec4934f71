import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.demo.ledger import Ledger, sums

ENDS = (10, 0, 7, 30)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Reports of three members: (member, partition, start, stop)."""
    reports = []
    for _ in range(draw(st.integers(0, 20))):
        partition = draw(st.sampled_from([0, 2, 3]))
        start = draw(st.integers(0, ENDS[partition] - 1))
        stop = draw(st.integers(start + 1, ENDS[partition]))
        reports.append((draw(st.integers(0, 2)), partition, start, stop))
    return reports


@given(histories(), st.lists(st.sampled_from([0, 1, 2, None]), min_size=4, max_size=4))
def test_the_books_balance(reports: list[tuple[int, int, int, int]], owners: list[int | None]) -> None:
    ledger = Ledger(ENDS, 3)
    for member in range(3):
        ledger.assigned(member, [partition for partition, owner in enumerate(owners) if owner == member])
    seen: set[tuple[int, int]] = set()
    for member, partition, start, stop in reports:
        ledger.processed(member, partition, start, stop)
        seen.update((partition, offset) for offset in range(start, stop))
    assert ledger.done == len(seen)
    assert sum(ledger.records) == ledger.done + ledger.repeated
    assert ledger.done + sum(ledger.left) == sum(ENDS)
    assert sum(ledger.backlog) == sum(
        left for left, owner in zip(ledger.left, owners, strict=True) if owner is not None
    )


@pytest.mark.parametrize("giver_first", [True, False])
def test_a_partition_has_one_owner_in_whatever_order_two_members_report_its_move(giver_first: bool) -> None:
    ledger = Ledger(ENDS, 2)
    ledger.assigned(0, [0, 1, 2, 3])
    assert not ledger.settled([0]), "at no generation yet"
    ledger.knows(0, 1)
    assert ledger.settled([0])
    for member in (0, 1) if giver_first else (1, 0):
        ledger.assigned(member, [0, 1] if member == 0 else [2, 3])
        assert not ledger.settled([0, 1])
        if giver_first and member == 0:
            assert ledger.owners == (0, 0, None, None)
    assert ledger.owners == (0, 0, 1, 1)
    assert ledger.backlog == (10, 37)
    assert not ledger.settled([0, 1]), "the second is in no generation"
    ledger.knows(1, 2)
    assert not ledger.settled([0, 1]), "the first is behind"
    ledger.knows(0, 2)
    assert ledger.settled([0, 1])
    assert ledger.generation == 2


def test_a_member_may_get_nothing_but_a_partition_may_not_be_left_out() -> None:
    ledger = Ledger(ENDS, 2)
    ledger.knows(0, 5)
    ledger.knows(1, 5)
    ledger.assigned(0, [0, 1, 3])
    assert not ledger.settled([0, 1])
    ledger.assigned(0, [0, 1, 2, 3])
    assert ledger.settled([0, 1])


def test_sums_leave_out_what_nobody_owns() -> None:
    assert sums([0, None, 1, 0], [5, 7, 1, 2], 3) == (7, 1, 0)
