"""What Java's ``HashMap`` decides in its sticky assignors; ``tests/golden`` holds whole answers of theirs."""

from __future__ import annotations

import pytest

from loadwise.assignor.algorithms.sticky import Sticky
from loadwise.assignor.algorithms.sticky.uniform import hash_map_order
from loadwise.assignor.model import GroupSnapshot, Member


def test_keys_come_in_the_order_of_a_java_hash_map() -> None:
    """The order that a ``java.util.HashMap`` of kafka-clients' ``RangeAssignor`` was seen to have."""
    names = ["alpha", "topic10", "topic9", "zeta"]
    assert [names[index] for index in hash_map_order(names, 4)] == ["zeta", "topic10", "alpha", "topic9"]
    # The hash of one character is its UTF-16 code unit, U+65E5 and U+672C: of 16 buckets these are in 5 and 12.
    assert hash_map_order(["\u672c", "\u65e5"], 2).tolist() == [1, 0]


@pytest.mark.parametrize("listed", [("Aa", "BB", "new"), ("BB", "new", "Aa")])
def test_of_members_in_one_bucket_the_one_listed_first_keeps_more(listed: tuple[str, ...]) -> None:
    """``Aa`` and ``BB`` have the same hash code in Java."""
    owned = {"Aa": {"t": [0, 1]}, "BB": {"t": [2, 3]}, "new": {}}
    members = [Member(id=name, topics=["t"], owned=owned[name], generation=1) for name in listed]
    answer = Sticky().assign(GroupSnapshot.of(members, {"t": 4})).by_member()
    kept = {name: len(topics.get("t", [])) for name, topics in answer.items()}
    assert kept == {"Aa": 1, "BB": 1, "new": 1} | {listed[0]: 2}
