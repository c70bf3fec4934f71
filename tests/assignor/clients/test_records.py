"""Polls are measured in offsets, as the demand is: markers of transactions and compacted records count in both."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import TopicPartition

from loadwise.assignor.clients.records import Advances

AT = TopicPartition("t", 0)


def polled(*offsets, at=AT):
    return {at: [SimpleNamespace(offset=offset) for offset in offsets]}


@pytest.mark.parametrize(
    ("polls", "counts"),
    [
        ([(0, 1, 2)], [3]),
        ([(0, 2, 4)], [5]),  # a marker after each record
        ([(0, 2), (4, 6)], [3, 4]),  # and one between two polls
        ([(0,), (2,), (4,)], [1, 2, 2]),  # a record in each poll
        ([(0, 1), (1000, 1001)], [2, 2]),  # a seek
        ([(5, 6), (0, 1)], [2, 2]),  # and one back
        ([(0, 100)], [101]),  # compacted
        ([(), (3,)], [0, 1]),
    ],
)
def test_a_poll_covers_offsets(polls, counts):
    advances = Advances()
    assert [advances.of(polled(*offsets)).get("t", 0) for offsets in polls] == counts


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.data())
def test_in_a_row_polls_cover_all_but_what_follows_the_last_record(steps, data):
    """Each record is followed by markers, fewer than there are records in a poll."""
    advances, at, total = Advances(), 0, 0
    for _ in steps:
        size = data.draw(st.integers(2, 6))
        total += advances.of(polled(*range(at, at + 2 * size, 2)))["t"]
        at += 2 * size
    assert total == at - 1


def test_topics_and_partitions_are_added_up():
    records = polled(0, 1) | polled(7, 9, at=TopicPartition("t", 1)) | polled(4, at=TopicPartition("u", 0))
    assert Advances().of(records) == {"t": 5, "u": 1}
