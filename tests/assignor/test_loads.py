"""Loads from lag and rate, from several resources, and from nothing: what each comes to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.impute import guess
from loadwise.assignor.load.drain import DrainLoad, drain_weight
from loadwise.assignor.load.lag import NONE_SINCE, FirstSince, LagLoad, PartitionOffsets, ends_before, lag_of, lags
from loadwise.assignor.load.mix import MixedLoad, mix
from loadwise.assignor.load.rate import RateLoad
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.model import Floats

loads = st.dictionaries(
    st.sampled_from("tuv"), st.lists(st.one_of(st.none(), st.just(0.0), st.floats(1e-3, 1e6)), max_size=5), max_size=3
)


def plain(mixed: dict[str, Floats]) -> dict[str, list[float | None]]:
    return {t: [None if math.isnan(x) else pytest.approx(x) for x in row.tolist()] for t, row in mixed.items()}


def test_unknown_loads_are_the_mean_of_their_topic_then_of_all_then_one() -> None:
    nan = math.nan
    topic_of = np.array([0, 0, 0, 1, 1, 2])
    assert guess(np.array([1, 3, nan, 8, nan, nan]), topic_of).tolist() == [1, 3, 2, 8, 8, 4]
    assert guess(np.full(2, nan), np.array([0, 1])).tolist() == [1, 1]


def test_resources_are_shares_of_their_own_total_times_their_weight() -> None:
    # 10 MB and 100 % CPU: of the first, partition 0 has 80 %; of the second, 10 %.
    resources = {"bytes_in": {"t": [8e6, 2e6]}, "cpu": {"t": [0.1, 0.9]}}
    assert plain(mix(resources)) == {"t": [0.9, 1.1]}
    assert plain(mix(resources, {"bytes_in": 3.0})) == {"t": [2.5, 1.5]}
    assert plain(mix(resources, {"cpu": 0})) == {"t": [0.8, 0.2]}


def test_what_one_resource_does_not_know_is_guessed_and_what_none_knows_stays_unknown() -> None:
    assert plain(mix({"a": {"t": [3, 1, None]}, "b": {"t": [None, 5], "u": [0]}})) == {
        "t": [3 / 4 + 5 / 5, 1 / 4 + 5 / 5, None],
        "u": [2 / 4 + 0],
    }


@given(first=loads, second=loads, factor=st.floats(1e-6, 1e6))
def test_the_unit_of_a_resource_does_not_matter(first: dict, second: dict, factor: float) -> None:
    scaled = {topic: [None if x is None else x * factor for x in row] for topic, row in second.items()}
    assert plain(mix({"a": first, "b": second})) == plain(mix({"b": scaled, "a": first}))


@given(first=loads, second=loads, weight=st.floats(0.1, 10))
def test_known_loads_add_up_to_the_weights(first: dict, second: dict, weight: float) -> None:
    both = {t: first.get(t, []) for t in first}
    mixed = mix({"a": both, "b": both}, {"b": weight})
    whole = sum(float(np.nansum(row)) for row in mixed.values())
    assert whole == pytest.approx(1 + weight if any(x for row in both.values() for x in row) else 0.0)
    assert all((row[~np.isnan(row)] >= 0).all() for row in mix({"a": first, "b": second}).values())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"cpu": 1}, "there is a weight for 'cpu', but no such"),
        ({"a": -1}, "'a' is -1"),
        ({"a": math.nan}, "'a' is nan"),
    ],
)
def test_bad_weights_are_refused(weights: dict[str, float], message: str) -> None:
    with pytest.raises(BadGroupError, match=message):
        mix({"a": {}}, weights)
    with pytest.raises(BadGroupError, match=message):
        MixedLoad(sources={"a": FixedLoad(load={})}, weights=weights)


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ([1, 2], r"^load is \[1, 2\]; it must map topics"),
        ({1: [1.0]}, "^load has 1, which is not a topic"),
        ({"clicks": 5}, "^the load of clicks is 5; it must be a list"),
        ({"clicks": None}, "^the load of clicks is None; it must be a list"),
        ({"clicks": "123"}, "^the load of clicks is '123'; it must be a list"),
        ({"clicks": [[1], [2]]}, "^the load of clicks is .*; it must be a list"),
        ({"a": [1], "clicks": ["a", 1, 1]}, r"^the load of clicks is \['a', 1, 1\]; it must be a list"),
        ({"clicks": [None, -1]}, r"^the load of clicks-1 is -1\.0; it must be a finite number"),
        ({"clicks": [math.inf]}, "^the load of clicks-0 is inf; it must be a finite number"),
    ],
)
def test_a_fixed_load_names_the_topic_of_an_invalid_load(load: object, message: str) -> None:
    with pytest.raises(BadGroupError, match=message):
        FixedLoad(load=load)  # type: ignore[arg-type]


def test_a_mixed_source_is_as_old_as_its_oldest_and_waits_for_all() -> None:
    now = 0.0
    lag = LagLoad(["t"], interval_s=1.0, clock=lambda: now)
    source = MixedLoad(sources={"lag": lag, "cpu": FixedLoad(load={"t": [1, 3]})}, weights={"lag": 2})
    assert source.snapshot(["t"]) is None
    lag.update({("t", 0): PartitionOffsets(0, 4, 1), ("t", 1): PartitionOffsets(0, 4, 3)})
    now = 7.0
    seen = source.snapshot(["t"])
    assert seen is not None
    assert (plain(dict(seen.load)), seen.age_s, seen.stale) == ({"t": [1.75, 1.25]}, 7.0, False)
    now = 31.0
    assert source.snapshot(["t"]).stale
    assert MixedLoad(sources={"lag": lag}, weights={"lag": 0}).snapshot(["t"]) is None


def test_lag_and_rate_make_one_weight() -> None:
    # 100 records/s for the group, 40 of them for what comes in: 300 waiting records take 5 s.
    lag, rate = {"t": [300, None, 0]}, {"t": [10, 30], "u": [None]}
    assert plain(drain_weight(lag, rate, 100.0)) == {"t": [70.0, 30.0, 0.0], "u": [None]}
    assert plain(drain_weight(lag, rate, 100.0, horizon_s=60)) == {"t": [15.0, 30.0, 0.0], "u": [None]}
    too_slow = drain_weight({"t": [300]}, {"t": [200]}, 100.0)
    assert plain(too_slow) == {"t": [200.0]}, "what comes in is too much already: rate alone"
    with pytest.raises(BadGroupError, match="horizon_s is 0"):
        drain_weight({}, {}, 1.0, horizon_s=0)


@pytest.mark.parametrize("bad", [-5.0, math.inf, -math.inf, 1e61])
@pytest.mark.parametrize("horizon_s", [None, 60.0])
def test_a_lag_or_a_rate_that_cannot_be_is_refused_whatever_it_adds_up_to(bad: float, horizon_s: float | None) -> None:
    for name, lag, rate in (("lag", [1.0, bad], [900.0, 900.0]), ("rate", [900.0, 900.0], [1.0, bad])):
        with pytest.raises(BadGroupError, match=rf"the {name} of t-1 is .*; it must be a finite number of 0 or more"):
            drain_weight({"t": lag}, {"t": rate}, 100.0, horizon_s=horizon_s)


@pytest.mark.parametrize("bad", [-5.0, math.inf, 1e61])
def test_a_resource_that_cannot_be_is_refused_by_name_and_partition(bad: float) -> None:
    with pytest.raises(BadGroupError, match=r"the resource 'cpu' of u-1 is .*; it must be a finite number"):
        mix({"cpu": {"t": [1.0], "u": [1.0, bad]}, "records": {"t": [1.0]}})


@given(lag=loads, rate=loads, spare=st.floats(0.1, 1e6))
def test_within_the_shortest_horizon_the_group_does_just_what_it_can(lag: dict, rate: dict, spare: float) -> None:
    coming = math.fsum(x for row in rate.values() for x in row if x)
    waiting = math.fsum(x for row in lag.values() for x in row if x)
    weight = drain_weight(lag, rate, coming + spare)
    whole = sum(float(np.nansum(row)) for row in weight.values())
    assert whole == pytest.approx(coming + spare if waiting else coming, rel=1e-6, abs=1e-6)


def test_rates_come_from_the_ends_of_two_readings_and_are_smoothed() -> None:
    now = 0.0
    rates = RateLoad(half_life_s=10.0, max_age_s=60.0, clock=lambda: now)
    rates.update({("t", 0): 100, ("t", 1): 0})
    assert rates.snapshot(["t"]) is None, "one reading is no rate"
    now = 10.0
    rates.update({("t", 1): 50, ("t", 3): 7})
    assert plain(dict(rates.snapshot(["t"]).load)) == {"t": [None, 5.0]}
    now = 20.0
    rates.update({("t", 0): 300, ("t", 1): 200, ("t", 3): 3})
    seen = rates.snapshot(["t"])
    # Partition 1: 5/s before, 15/s for one half-life; partition 3 ends earlier than before: its topic was made again.
    assert plain(dict(seen.load)) == {"t": [10.0, 10.0]}
    assert (seen.unit, seen.age_s, seen.stale) == ("records/s", 0.0, False)
    now = 81.0
    assert rates.snapshot(["t"]).stale


def test_a_group_can_go_by_the_lag_and_the_arrivals_of_one_reader() -> None:
    now = 0.0
    lag = LagLoad(["t"], auto_offset_reset="earliest", clock=lambda: now)
    load = DrainLoad(lag=lag, rate=lag.arrivals, capacity=30.0)
    assert load.snapshot(["t"]) is None
    lag.update({("t", 0): PartitionOffsets(0, 100, 0), ("t", 1): PartitionOffsets(0, 0, 0)})
    assert plain(dict(load.snapshot(["t"]).load)) == {"t": [30.0, 0.0]}, "no rate yet: lag alone"
    now = 10.0
    lag.update({("t", 0): PartitionOffsets(0, 100, 0), ("t", 1): PartitionOffsets(0, 200, 200)})
    seen = load.snapshot(["t"])
    assert (plain(dict(seen.load)), seen.unit) == ({"t": [10.0, 20.0]}, "records/s")
    for bad in ({"capacity": 0.0}, {"capacity": math.nan}, {"capacity": 1.0, "horizon_s": 0.0}):
        with pytest.raises(BadGroupError):
            DrainLoad(lag=lag, rate=lag.arrivals, **bad)


def test_topics_that_the_group_reads_no_more_take_no_share() -> None:
    lag, rate = FixedLoad(load={"t": [300, 0], "old": [9e6]}), FixedLoad(load={"t": [10, 30], "old": [70]})
    drained = DrainLoad(lag=lag, rate=rate, capacity=100.0).snapshot(["t"])
    assert plain(dict(drained.load)) == {"t": [70.0, 30.0]}
    mixed = MixedLoad(sources={"lag": lag, "rate": rate}).snapshot(["t"])
    assert plain(dict(mixed.load)) == {"t": [1.25, 0.75]}


offsets = st.builds(
    PartitionOffsets, st.integers(0, 9), st.integers(0, 20), st.one_of(st.none(), st.integers(0, 30)), st.just("")
)


@given(st.lists(offsets, min_size=1), st.booleans())
def test_the_lag_of_many_partitions_is_that_of_each(many: list[PartitionOffsets], from_beginning: bool) -> None:
    committed = [math.nan if each.committed is None else each.committed for each in many]
    columns = (np.array(column, float) for column in ([e.beginning for e in many], [e.end for e in many], committed))
    each = [lag_of(one, from_beginning=from_beginning) for one in many]
    assert lags(*columns, from_beginning=from_beginning).tolist() == each


def test_what_was_not_read_for_an_hour_is_forgotten() -> None:
    now = 0.0
    lag = LagLoad(["t", "gone"], auto_offset_reset="earliest", clock=lambda: now)
    for now in (0.0, 10.0):
        ends = {("t", 0): 100 + int(now), ("t", 1): 100, ("gone", 0): 500 + int(now)}
        lag.update({partition: PartitionOffsets(0, end, 0) for partition, end in ends.items()})
    for now in (3600.0, 3620.0):
        lag.update({("t", 0): PartitionOffsets(0, 4000, 0)})
        kept = ["t", "gone"] if now == 3600.0 else ["t"]
        assert sorted(lag.snapshot(["t"]).load) == sorted(kept)
        assert sorted(lag.arrivals.snapshot(["t"]).load) == sorted(kept)
    assert plain(dict(lag.snapshot(["t"]).load)) == {"t": [4000.0, 100.0]}, "a topic is kept as a whole"


NOW_MS = 1_700_000_000_000


def rates_by(found: dict[int, FirstSince], ends: list[int]) -> dict[int, float]:
    """Partition to the records/s of the last minute, by where it ended before that."""
    offsets = {("t", number): PartitionOffsets(0, end, None) for number, end in enumerate(ends)}
    before = ends_before({("t", number): first for number, first in found.items()}, offsets, NOW_MS)
    return {number: (ends[number] - end) / 60 for (_, number), end in before.items()}


def test_where_partitions_ended_a_minute_ago_tells_their_rates() -> None:
    found = {0: FirstSince(400, NOW_MS - 59_000), 1: NONE_SINCE, 2: FirstSince(0, NOW_MS - 100)}
    assert rates_by(found, [1000, 500, 6]) == {0: 10.0, 1: 0.0, 2: 0.1}


@pytest.mark.parametrize("age_s", [5, 12, 30, 60])
def test_a_topic_that_is_younger_than_a_minute_has_its_rates_since_its_first_record(age_s: int) -> None:
    """Partition 1 has had its first record in the newest second, and partition 2 none."""
    found = {0: FirstSince(0, NOW_MS - 1000 * age_s), 1: FirstSince(0, NOW_MS - 900), 2: NONE_SINCE}
    assert rates_by(found, [100 * age_s, age_s, 0]) == pytest.approx({0: 100.0, 1: 1.0, 2: 0.0}, abs=0.02)


def test_what_came_in_a_moment_is_no_rate() -> None:
    assert rates_by({0: FirstSince(0, NOW_MS - 10)}, [500]) == {}


def test_times_that_are_long_ago_or_to_come_tell_nothing() -> None:
    assert rates_by({0: NONE_SINCE, 1: NONE_SINCE}, [1000, 1000]) == {}
    assert rates_by({0: FirstSince(0, NOW_MS + 3_600_000), 1: FirstSince(0, NOW_MS - 5)}, [1000, 1000]) == {}


def test_a_partition_whose_log_goes_back_further_has_had_that_time() -> None:
    """Its topic is older than a minute, so that another partition's first record tells nothing of the topic's age."""
    found = {0: FirstSince(600, NOW_MS - 59_000), 1: FirstSince(0, NOW_MS - 6000)}
    assert rates_by(found, [1200, 600]) == {0: 10.0, 1: 10.0}
