"""Why partitions are uneven: what the report foretells, beside keys that kafka-python's partitioner really places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from loadwise.assignor.load.history import HotKey, TopicHistory
from loadwise.dispatcher.keys import partition_of
from loadwise.loads.skew import EVEN, Skew, shared, skew_of

KEYS = st.dictionaries(st.binary(max_size=12), st.integers(1, 1000), min_size=1, max_size=40)


def placed(keys: dict[bytes, int], partitions: int) -> list[float]:
    """The load of each partition, by kafka-python's partitioner."""
    load = [0.0] * partitions
    for key, weight in keys.items():
        load[(murmur2(key) & 0x7FFFFFFF) % partitions] += weight
    return load


def looked_at(keys: dict[bytes, int], partitions: int, *, hot: int = 1000, rest: float = 0.0) -> Skew:
    """What the report tells of a topic with these keys, and as much more in each partition without a key."""
    found = [HotKey(key, partition_of(key, partitions), float(weight)) for key, weight in keys.items()]
    found.sort(key=lambda each: -each.load)
    load = tuple(one + rest for one in placed(keys, partitions))
    return skew_of(TopicHistory("t", load, 24, tuple(found[:hot])), partition_of)


def foretold(skew: Skew, change: str) -> float:
    return next(each.max_over_mean for each in skew.what_if if each.change == change)


@given(keys=KEYS, partitions=st.integers(1, 12))
def test_more_partitions_are_foretold_just_as_keys_would_be_placed(keys: dict[bytes, int], partitions: int):
    skew = looked_at(keys, partitions)
    assert skew.by_hash
    for times in (2, 4):
        really = shared(placed(keys, times * partitions), partitions)
        assert foretold(skew, f"{times * partitions} partitions") == pytest.approx(really)


@given(keys=KEYS, partitions=st.integers(1, 12), rest=st.integers(0, 1000))
def test_a_key_that_is_spread_has_its_share_everywhere(keys: dict[bytes, int], partitions: int, rest: int):
    skew = looked_at(keys, partitions, rest=rest)
    hottest = max(keys.values())
    others = [load + rest for load in placed({**keys, skew.hot[0].key: 0}, partitions)]
    total = sum(keys.values()) + rest * partitions
    expected = (max(others) + hottest / partitions) * partitions / total
    assert foretold(skew, "the hottest key spread over all partitions") == pytest.approx(expected)


def test_one_key_above_a_fair_share_is_named_as_what_no_partitions_mend():
    skew = looked_at({b"hot": 600, **{b"%d" % number: 10 for number in range(40)}}, 4)
    assert skew.advice.startswith("The hottest key alone has 60% of the load, 2.4 times the fair share of a partition.")
    assert skew.fullest == partition_of(b"hot", 4)


def test_keys_that_meet_by_chance_are_parted_by_more_partitions():
    together = [b"%d" % number for number in range(1000) if partition_of(b"%d" % number, 4) == 1][:12]
    others = [b"%d" % number for number in range(1000) if partition_of(b"%d" % number, 4) != 1][:12]
    skew = looked_at(dict.fromkeys([*together, *others], 10), 4)
    assert skew.max_over_mean == 2.0
    assert foretold(skew, "16 partitions") == pytest.approx(1.0, abs=0.1)
    assert "some share a partition by chance. With 8 partitions the busiest of 4 members" in skew.advice


def test_even_partitions_need_nothing():
    skew = looked_at({}, 4, rest=5.0)
    assert (skew.max_over_mean, skew.what_if) == (1.0, ())
    assert "change nothing" in skew.advice
    assert skew_of(TopicHistory("t", (0.0, 0.0), 1, ()), partition_of).max_over_mean == 1.0


def test_nothing_is_foretold_of_partitions_that_are_chosen_in_another_way():
    hot = tuple(HotKey(b"%d" % number, 3, 10.0) for number in range(20))
    skew = skew_of(TopicHistory("t", (10.0, 10.0, 10.0, 200.0), 1, hot), partition_of)
    assert not skew.by_hash
    assert not any("partitions" in each.change.split()[-1] and each.change[0].isdigit() for each in skew.what_if[3:])
    assert "did not choose the partitions by Kafka's hash" in skew.advice
    assert skew.max_over_mean > EVEN
