"""Positions of streams: their JSON, what limits leave, what is lost between two; pure."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.streaming.listener import SourceProgress

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.planning.member_progress import MemberOffset, as_json
from loadwise.spark_source.planning.progress import (
    Lag,
    apart_from_recreated,
    available,
    from_json,
    ids_in,
    lag,
    limited,
    moved_back,
    step,
    to_json,
    with_ids,
)
from loadwise.spark_source.session import imbalance_of, lag_of

places = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "ß"]), st.integers(0, 12))
positions = st.dictionaries(places, st.integers(0, 1 << 40), max_size=10)


def at(*offsets):
    return {TopicPartition("t", partition): offset for partition, offset in enumerate(offsets) if offset is not None}


@given(positions)
def test_json_there_and_back_in_one_order_whatever_the_input(given_positions):
    text = json.dumps(to_json(given_positions))
    assert from_json(json.loads(text)) == given_positions
    shuffled = dict(reversed(given_positions.items()))
    assert json.dumps(to_json(shuffled)) == text


def test_ids_of_topics_there_and_back():
    offset = json.loads(json.dumps(with_ids(at(5, 6), {"t": "_id-1", "gone": "_id-2"})))
    assert ids_in(offset) == {"t": "_id-1"}
    assert from_json(offset) == at(5, 6)
    assert ids_in(to_json(at(5))) == {}


def test_partitions_are_in_the_order_of_their_numbers():
    assert json.dumps(to_json(at(*range(11)))).endswith('"9": 9, "10": 10}}')


@given(positions, positions, st.integers(1, 10_000))
def test_a_limit_is_kept_but_for_one_offset_a_partition(start, latest, most):
    end = limited(start, latest, {}, most)
    taken = {place: end[place] - start[place] for place in available(start, latest, {})}
    assert set(end) == set(latest)
    assert all(1 <= taken[place] <= size for place, size in available(start, latest, {}).items())
    assert sum(taken.values()) <= max(most, 0) + len(taken)
    # What has nothing to give stays where it ends.
    assert all(end[place] == latest[place] for place in latest if place not in taken)


def test_the_limit_is_shared_in_proportion():
    assert limited(at(0, 0, 10), at(900, 90, 10), {}, 100) == at(90, 9, 10)
    assert limited(at(0), at(900, 100), at(None, 50), 95) == at(90, 55)  # a new one, from its first offset


def test_losses_name_partition_and_offsets():
    found = step(at(5, 5, 5, None, None), at(9, 3, None, 7, 8), at(None, None, None, 0, 2))
    assert [str(item) for item in found.ranges] == ["t-0[5, 9)", "t-1[5, 5)", "t-3[0, 7)", "t-4[2, 8)"]
    assert found.losses == (
        "t-2 was deleted, and its records from offset 5 on are lost",
        "t-1 was read up to offset 5 and now ends at 3: it was deleted and created again",
        "t-4 is new, and its offsets [0, 2) were deleted already",
    )


@pytest.mark.parametrize(("latest", "back"), [(at(5, 6), False), (at(4, 6), True), (at(5), True), (at(5, 5, 0), False)])
def test_what_counts_as_moved_back(latest, back):
    assert moved_back(at(5, 5), latest) is back


def test_lag():
    assert lag(at(5, 5), at(15, 5, 8)) == Lag(0, 10 / 3, 10)
    assert str(lag(at(5, 5), at(15, 5, 8))) == "lag min 0, avg 3.3, max 10"
    assert lag({}, {}) == Lag(0, 0.0, 0)


def progress(start, end, latest=None):
    told = [each and json.dumps(each) for each in (start, end, latest)]
    return SimpleNamespace(**dict(zip(("startOffset", "endOffset", "latestOffset"), told, strict=True)))


def without(name, form):
    """A progress of Spark's that does not tell one of its offsets, in one of the ways in which PySpark puts that."""
    found = progress(to_json(at(4)), to_json(at(9)), to_json(at(11)))
    if form == "a query's":
        source = {"description": "", "numInputRows": 5, "inputRowsPerSecond": 1.0, "processedRowsPerSecond": 1.0}
        source |= {each: json.loads(text) for each, text in vars(found).items()} | {name: None}
        return SourceProgress.fromJson(source)
    if form == "a listener's":
        told = {each: partial(str, text) for each, text in vars(found).items()} | {name: lambda: None}
        more = {
            each: lambda: 0 for each in ("description", "numInputRows", "inputRowsPerSecond", "processedRowsPerSecond")
        }
        return SourceProgress.fromJObject(SimpleNamespace(**told, **more, metrics=dict))
    setattr(found, name, None)
    if form == "a query's of PySpark 4.0":  # `SourceProgress.fromJson` of 4.0 and 4.1 makes text of what it parsed
        return SimpleNamespace(**{each: str(text and json.loads(text)) for each, text in vars(found).items()})
    return found


@given(positions)
def test_what_is_as_much_in_each_partition_is_even(start):
    ended = {place: offset + 7 for place, offset in start.items()}
    found = imbalance_of(progress(to_json(start), to_json(ended)))
    assert found == (pytest.approx(1.0) if start else None)


def test_the_fullest_partition_is_told_by_the_mean():
    assert imbalance_of(progress(to_json(at(10, 20, 5)), to_json(at(40, 20, 5)))) == 3.0
    assert imbalance_of(progress(to_json(at(0, 0)), to_json(at(3, 1, 900)))) == 1.5  # a new one has no known beginning
    assert imbalance_of(progress(to_json(at(4)), to_json(at(4)))) is None
    assert imbalance_of(progress(None, to_json(at(4)))) is None


@pytest.mark.parametrize("form", ["a query's", "a query's of PySpark 4.0", "a listener's", "None"])
@pytest.mark.parametrize(
    ("name", "behind", "uneven"),
    [("startOffset", Lag(2, 2.0, 2), None), ("endOffset", None, None), ("latestOffset", None, 1.0)],
)
def test_of_a_progress_that_tells_no_offset_there_is_no_lag_or_imbalance(name, form, behind, uneven):
    found = without(name, form)
    assert lag_of(found) == behind
    assert imbalance_of(found) == uneven


def test_of_a_member_those_partitions_count_that_it_read():
    end = as_json(MemberOffset("g", at(50, 60, 70), begins=at(20, 50)))
    assert imbalance_of(progress(as_json(MemberOffset("g", at(20, 50, 0))), end)) == 1.5
    assert imbalance_of(progress(end, end)) is None


def test_positions_in_recreated_topics_are_losses():
    kept, lost = TopicPartition("kept", 0), TopicPartition("lost", 3)
    unknown, new = TopicPartition("unknown", 0), TopicPartition("new", 0)
    places = dict.fromkeys([lost, kept, unknown, new], 7)
    was, now = {"kept": "a", "lost": "b", "unknown": "c"}, {"kept": "a", "lost": "x", "new": "d"}
    left, (loss,) = apart_from_recreated(places, was, now)
    assert left == dict.fromkeys([kept, unknown, new], 7)
    assert loss.startswith("lost-3 was deleted and created again, and its records from offset 7 on are lost")
