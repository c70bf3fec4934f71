"""Partitions by number, and tables over them."""

import numpy as np

from loadwise.assignor.live.index import PartitionIndex
from loadwise.assignor.live.partitions import PartitionState
from loadwise.assignor.model import GroupSnapshot, Member


def index(*partitions):
    made = PartitionIndex()
    made.add(partitions)
    return made


def test_partitions_keep_their_numbers_and_new_ones_get_the_next():
    made = index(("t", 1), ("u", 0))
    assert made.rows([("u", 0), ("t", 0), ("t", 1)]).tolist() == [1, 2, 0]
    assert made.rows([("u", 0), ("t", 0), ("t", 1)]).tolist() == [1, 2, 0], "the same was asked for again"
    assert made.rows([("t", 0), ("u", 0)]).tolist() == [2, 1]


def test_arrays_by_topic_have_gaps_where_a_partition_was_never_read():
    made = index(("t", 2), ("u", 0), ("t", 0))
    by_topic = made.by_topic(np.array([5.0, 6.0, 7.0]))
    assert by_topic.keys() == {"t", "u"}
    np.testing.assert_equal(by_topic["t"], [7.0, np.nan, 5.0])
    assert made.topic_sums(np.array([5.0, np.nan, 7.0])) == {"t": 12.0, "u": 0.0}
    assert made.of_topics({"u": 3.0}, 1.0).tolist() == [1.0, 3.0, 1.0]
    made.add([("v", 0)])
    assert made.of_topics({"u": 3.0, "v": 4.0}, 1.0).tolist() == [1.0, 3.0, 1.0, 4.0]
    assert PartitionIndex().by_topic(np.empty(0)) == {}


def test_arrays_have_the_values_of_their_rows():
    made = index(("t", 2), ("u", 0))
    np.testing.assert_equal(made.spread(np.array([1]), np.array([5.0])), [np.nan, 5.0])
    np.testing.assert_equal(made.array({("u", 0): 5.0, ("v", 0): 6.0}), [np.nan, 5.0, 6.0])
    assert len(made) == 3
    group = GroupSnapshot.of([Member(id="a", topics=["t", "u"])], {"t": 3, "u": 1})
    assert made.rows_of(group).tolist() == [-1, -1, 0, 1]
    made.keep(np.array([1]))
    assert made.rows([]).tolist() == []


def test_what_is_forgotten_has_no_number_any_more():
    made = index(("t", 0), ("t", 1), ("u", 0))
    assert made.rows([("t", 1)]).tolist() == [1]
    made.keep(np.array([2, 1]))
    assert made.rows([("t", 1)]).tolist() == [1]
    assert made.rows([("u", 0)]).tolist() == [0]
    assert made.by_topic(np.array([1.0, 2.0]))["u"].tolist() == [1.0]


def test_a_state_is_spread_and_picked_as_a_whole():
    state = PartitionState().spread(3)
    arrays = [state.end, state.went_on, state.arrivals.rate, state.progress.position, state.backlog.waiting]
    assert all(np.isnan(array).all() and array.shape == (3,) for array in arrays)
    assert state.arrivals.ends.shape == (0, 3)
    assert state.spread(5).backlog.lag.shape == (5,)
    assert state.pick(np.array([1, 0])).backlog.lag.shape == (2,)
