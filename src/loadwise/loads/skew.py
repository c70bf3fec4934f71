"""Why the partitions of a topic are uneven, and what better keys or more partitions would change. Pure.

What more partitions would change can be told for keys that Kafka's producers have placed, which is by murmur2 of the
key. A topic with k times as many partitions has the keys of partition p in p, p + P, p + 2P, … Where the hot ones go is
calculated, and the rest of p is taken to be spread evenly over these. More partitions are smaller pieces for the same
members: what is told is how even ``weighted`` makes as many members as there are partitions now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.load.history import HotKey, Hour, TopicHistory
from loadwise.assignor.model import GroupSnapshot, Member

PartitionOf: TypeAlias = Callable[[bytes, int], int]
"""Key and number of partitions to the partition that producers give it."""

EVEN = 1.2
"""The largest max/mean that nobody need do anything about."""
TIMES = (2, 4)
"""How many times as many partitions are considered."""
SPREAD = (1, 3, 10)
"""Of how many of the hottest keys it is considered that each were spread over all partitions."""
PLACED = 0.9
"""The share of the hot keys' load that must be where murmur2 puts it, for more partitions to be calculated."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One change, and how uneven as many members as there are partitions now would be."""

    change: str
    max_over_mean: float


@dataclass(frozen=True, slots=True)
class UnevenHours:
    """What the sum over all hours hides."""

    uneven: int
    """How many hours are above `EVEN`."""
    of: int
    """How many hours hold enough to be looked at: half as much as the mean hour, or more."""
    worst: Hour
    """The most uneven one."""
    max_over_mean: float
    """Of that hour."""
    hot_keys: int
    """How many different keys were the hottest of an uneven hour."""


@dataclass(frozen=True, slots=True)
class Skew:
    """What a topic's history tells."""

    topic: str
    hours: int
    total: float
    """Bytes or records over all hours."""
    partitions: int
    max_over_mean: float
    """The load of the fullest partition by that of the mean one; 1 where there is no load at all."""
    fullest: int
    """The partition with the most load."""
    hot: tuple[HotKey, ...]
    """The hottest keys, the hottest first."""
    by_hash: bool
    """Whether the hot keys are where murmur2 puts them."""
    what_if: tuple[WhatIf, ...]
    advice: str
    hours_apart: UnevenHours | None = None
    """None where no hour is uneven."""


def skew_of(history: TopicHistory, partition_of: PartitionOf) -> Skew:
    """Look at one topic."""
    load, hot = history.load, history.hot
    count, total, uneven = len(load), sum(load), max_over_mean(load)
    placed = sum(each.load for each in hot if partition_of(each.key, count) == each.partition)
    by_hash = bool(hot) and placed >= PLACED * sum(each.load for each in hot)
    what_if = [
        WhatIf(
            f"the {'hottest key' if number == 1 else f'{number} hottest keys'} spread over all partitions",
            max_over_mean(_spread(load, hot[:number])),
        )
        for number in SPREAD
        if number <= len(hot)
    ]
    if by_hash:
        what_if += [
            WhatIf(f"{times * count} partitions", shared(_more(load, hot, times, partition_of), count))
            for times in TIMES
        ]
    fullest = max(range(count), key=lambda number: load[number])
    apart = _uneven_hours(history.by_hour, total)
    advice = _advice(uneven, hot, total, count, what_if, by_hash=by_hash, apart=apart)
    return Skew(
        history.topic, history.hours, total, count, uneven, fullest, hot, by_hash, tuple(what_if), advice, apart
    )


def max_over_mean(load: Sequence[float]) -> float:
    """The largest load over the mean one; 1 where there is none."""
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def shared(load: Sequence[float], members: int) -> float:
    """The load of the busiest of so many members over the mean one, when ``weighted`` gives them these partitions."""
    group = GroupSnapshot.of(
        [Member(id=f"{number:06}", topics=["t"]) for number in range(members)], {"t": len(load)}, load={"t": list(load)}
    )
    owners = algorithm("weighted").assign(group).owner
    return max_over_mean(np.bincount(owners, weights=load, minlength=members).tolist())


def _uneven_hours(hours: Sequence[Hour], total: float) -> UnevenHours | None:
    looked_at = [hour for hour in hours if 2 * sum(hour.load) * len(hours) >= total]
    uneven = [hour for hour in looked_at if max_over_mean(hour.load) > EVEN]
    if not uneven:
        return None
    worst = max(uneven, key=lambda hour: max_over_mean(hour.load))
    keys = {hour.hottest.key for hour in uneven if hour.hottest is not None}
    return UnevenHours(len(uneven), len(looked_at), worst, max_over_mean(worst.load), len(keys))


def _spread(load: Sequence[float], keys: Sequence[HotKey]) -> list[float]:
    """The loads, had each of these keys an equal part of its records in each partition."""
    everywhere = sum(each.load for each in keys) / len(load)
    changed = [one + everywhere for one in load]
    for each in keys:
        changed[each.partition] -= each.load
    return changed


def _more(load: Sequence[float], hot: Sequence[HotKey], times: int, partition_of: PartitionOf) -> list[float]:
    """The loads of so many times as many partitions."""
    rest = list(load)
    for each in hot:
        rest[each.partition] -= each.load
    changed = [one / times for _ in range(times) for one in rest]
    for each in hot:
        changed[partition_of(each.key, len(changed))] += each.load
    return changed


def _advice(
    uneven: float,
    hot: Sequence[HotKey],
    total: float,
    count: int,
    what_if: Sequence[WhatIf],
    *,
    by_hash: bool,
    apart: UnevenHours | None,
) -> str:
    if uneven <= EVEN and apart is not None:
        return (
            f"Over all hours the partitions are even, but {apart.uneven} of {apart.of} hours are not. Loads out of"
            " history hide that: let the group measure its load live, and give a key that is hot for an hour a finer"
            " form."
        )
    if uneven <= EVEN:
        return "The partitions are even enough: nothing need be done."
    if hot and hot[0].load * count > EVEN * total:
        share, fair = hot[0].load / total, hot[0].load * count / total
        return (
            f"The hottest key alone has {share:.0%} of the load, {fair:.1f} times what a partition should have. More"
            " partitions cannot mend that: give its records a finer key, or spread them (a number behind the key)."
        )
    key = apart.worst.hottest if apart is not None else None
    if apart is not None and key is not None and key.load * count > EVEN * (total_then := sum(apart.worst.load)):
        return (
            "No key is too large over all hours, but in the worst one a single key has"
            f" {key.load / total_then:.0%} of the load. More partitions cannot mend that: give such keys a finer form."
        )
    better = min(what_if[-len(TIMES) :], key=lambda each: each.max_over_mean) if by_hash else None
    if better is not None and better.max_over_mean < uneven:
        return (
            f"No single key is too large; some share a partition by chance. With {better.change} the busiest of"
            f" {count} members could have {better.max_over_mean:.2f} times the mean."
        )
    if by_hash:
        return "No single key is too large, and more partitions would not part those that share one: change the keys."
    return (
        "No single hot key explains it, and the partitions were not chosen by Kafka's hash of the key: look at how the"
        " producers choose them."
    )
