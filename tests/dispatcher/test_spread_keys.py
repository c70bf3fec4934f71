"""Hot keys: the sketch against exact counts, the spread against a simulation of hashing."""

from __future__ import annotations

import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from loadwise.dispatcher import BadDispatcherError
from loadwise.dispatcher.space_saving import SpaceSaving
from loadwise.dispatcher.spread_keys import KeySpreader, SpreadKeys


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=300), st.integers(1, 12))
def test_the_sketch_keeps_its_bounds(stream: list[tuple[int, int]], capacity: int) -> None:
    sketch, exact = SpaceSaving(capacity), Counter[int]()
    for key, amount in stream:
        if not amount:
            sketch.halve()
            exact = Counter({each: count / 2 for each, count in exact.items()})
            continue
        counted = sketch.add(key, amount)
        exact[key] += amount
        assert counted.least <= exact[key] <= counted.most <= exact[key] + sketch.total / capacity
        assert len(sketch._counts) <= capacity
    assert sketch.total == exact.total()
    assert sketch._counts.keys() >= {key for key, amount in exact.items() if amount > sketch.total / capacity}


def zipf(keys: int, records: int, seed: int = 1) -> list[bytes]:
    weights = np.arange(1, keys + 1) ** -1.2
    drawn = np.random.default_rng(seed).choice(keys, size=records, p=weights / weights.sum())
    return [b"key-%d" % key for key in drawn.tolist()]


def imbalance(placed: Counter[int], partitions: int) -> float:
    return max(placed.values()) / (placed.total() / partitions)


@pytest.mark.parametrize("partitions", [6, 36, 90])
def test_zipf_keys_are_spread_evenly_where_hashing_fails(partitions: int) -> None:
    records = zipf(keys=10_000, records=60_000)
    hashed = {key: (murmur2(key) & 0x7FFFFFFF) % partitions for key in set(records)}
    spreader = KeySpreader(SpreadKeys(choices=2), partitions)
    placed = Counter(spreader.partition(key, 100) for key in records)
    assert imbalance(Counter(hashed[key] for key in records), partitions) > 2 - (partitions == 6) * 0.5
    assert imbalance(placed, partitions) <= 1.02


@pytest.mark.parametrize(("partitions", "most"), [(90, 1.02), (360, 1.06)])  # 69 records a partition: one is 1.4 %
def test_keys_that_become_hot_are_spread_soon(partitions: int, most: float) -> None:
    spreader = KeySpreader(SpreadKeys(choices=2), partitions)
    for hour in range(3):
        placed = Counter(spreader.partition(b"%d-%b" % (hour, key), 100) for key in zipf(10_000, 25_000, seed=hour))
        assert imbalance(placed, partitions) <= most, hour


def test_keys_that_are_not_hot_have_no_more_candidates_than_asked() -> None:
    places: dict[bytes, set[int]] = {}
    spreader = KeySpreader(SpreadKeys(choices=2), 36)
    for key in zipf(keys=10_000, records=60_000):
        places.setdefault(key, set()).add(spreader.partition(key, 100))
    assert max(len(places[b"key-%d" % rank]) for rank in range(200, 10_000) if b"key-%d" % rank in places) == 2
    assert len(places[b"key-0"]) > 10


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 1_000_000)), max_size=60),
    st.sampled_from([3, 36, 90]),
    st.integers(1, 3),
    st.integers(1, 1000),
)
def test_the_first_records_of_a_producer_make_no_key_hot(
    records: list[tuple[int, int]], partitions: int, choices: int, tracked_keys: int
) -> None:
    """Producers of all ages agree on a cold key's candidates, however short they live and however large a record is."""
    spreader = KeySpreader(SpreadKeys(choices=choices, tracked_keys=tracked_keys), partitions)
    places: dict[int, list[int]] = {}
    for key, size in records:
        if len(places.setdefault(key, [])) < 3:
            places[key].append(spreader.partition(b"%d" % key, size + 16))
    assert all(len(set(found)) <= choices for found in places.values())


@pytest.mark.parametrize("records", [1, 20, 100, 500, 20_000])
@pytest.mark.parametrize("tracked_keys", [100, 1000])
def test_a_cold_key_has_its_candidates_under_producers_of_all_ages(records: int, tracked_keys: int) -> None:
    random, places = Random(1), dict[bytes, set[int]]()
    for _ in range(20_000 // records):
        spreader = KeySpreader(SpreadKeys(choices=2, tracked_keys=tracked_keys), 36)
        for _ in range(records):
            key = b"%d" % random.randrange(500)
            places.setdefault(key, set()).add(spreader.partition(key, 100))
    assert max(map(len, places.values())) == 2 - (records == 1)


def test_a_hot_key_is_spread_by_producers_that_live_for_a_hundred_records() -> None:
    random, places = Random(1), set()
    for _ in range(20):
        spreader = KeySpreader(SpreadKeys(choices=2), 36)
        for number in range(100):
            found = spreader.partition(b"hot" if random.random() < 0.5 else b"%d" % number, 100)
            places.add(found)
    assert len(places) == 36


def test_the_first_candidate_is_where_kafka_puts_the_key_and_all_producers_agree_on_the_others() -> None:
    for number in range(100):
        key = b"%d" % number
        places = []
        for _ in range(2):
            spreader = KeySpreader(SpreadKeys(choices=2), 12)
            places.append([spreader.partition(key, 1) for _ in range(10)])
        assert places[0] == places[1]
        assert places[0][0] == (murmur2(key) & 0x7FFFFFFF) % 12


@pytest.mark.parametrize("partitions", [1, 2, 3, 90])
def test_every_partition_is_a_candidate_of_a_key_that_is_alone(partitions: int) -> None:
    spreader = KeySpreader(SpreadKeys(), partitions)
    assert Counter(spreader.partition(b"key", 1) for _ in range(10 * partitions)) == dict.fromkeys(
        range(partitions), 10
    )


def test_a_key_that_cooled_down_has_few_candidates_again() -> None:
    spreader = KeySpreader(SpreadKeys(tracked_keys=100), 36)
    hot = {spreader.partition(b"hot", 1) for _ in range(2000)}
    for number in range(20_000):
        spreader.partition(b"%d" % (number % 3000), 1)
    assert len(hot) == 36
    assert len({spreader.partition(b"hot", 1) for _ in range(30)}) < 9


@pytest.mark.parametrize(
    "wrong",
    [
        {"choices": 0},
        {"choices": "2"},
        {"choices": 1.5},
        {"choices": math.nan},
        {"tracked_keys": 0},
        {"tracked_keys": None},
    ],
)
def test_a_wrong_number_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadDispatcherError, match=next(iter(wrong))):
        SpreadKeys(**wrong)
