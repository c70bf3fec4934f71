"""Explains why the partitions of a topic are uneven, and what better keys or more partitions would change. Pure.

The effect of more partitions is known for keys that Kafka's producers have placed by murmur2. A topic with k times as
many partitions has the keys of partition p in p, p + P, p + 2P, … The places of hot keys are calculated, and the rest
of p is assumed to spread evenly over these. More partitions are smaller pieces for the same members: the result is the
balance of ``weighted`` among as many members as there are partitions now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.load.history import HotKey, Hour, TopicHistory
from loadwise.assignor.measure import max_over_mean
from loadwise.assignor.model import GroupSnapshot, Member

PartitionOf: TypeAlias = Callable[[bytes, int], int]
"""Key and number of partitions to the partition that producers give it."""

EVEN = 1.2
"""The largest max/mean that counts as even."""
TIMES = (2, 4)
"""The multiples of the number of partitions to consider."""
SPREAD = (1, 3, 10)
"""How many of the hottest keys to consider spread over all partitions."""
PLACED = 0.9
"""The share of the hot keys' load that must be where murmur2 puts it, for more partitions to be calculated."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One change, and the balance after it of as many members as there are partitions now."""

    change: str
    max_over_mean: float


@dataclass(frozen=True, slots=True)
class UnevenHours:
    """The uneven hours, which the sum over all hours hides."""

    uneven: int
    """How many hours are above `EVEN`."""
    of: int
    """How many hours count: those with at least half the load of the mean hour."""
    worst: Hour
    """The most uneven one."""
    max_over_mean: float
    """The balance of that hour."""
    hot_keys: int
    """How many different keys were the hottest of an uneven hour."""


@dataclass(frozen=True, slots=True)
class Skew:
    """The balance of a topic's history."""

    topic: str
    hours: int
    total: float
    """Bytes or records over all hours."""
    partitions: int
    max_over_mean: float
    """The load of the fullest partition over that of the mean one; 1 without load."""
    fullest: int
    """The partition with the most load."""
    hot: tuple[HotKey, ...]
    """The hottest keys, the hottest first."""
    by_hash: bool
    """Whether the hot keys are in the partitions that murmur2 gives."""
    what_if: tuple[WhatIf, ...]
    advice: str
    hours_apart: UnevenHours | None = None
    """None if no hour is uneven."""


def skew_of(history: TopicHistory, partition_of: PartitionOf) -> Skew:
    """Return the balance of one topic."""
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


def shared(load: Sequence[float], members: int) -> float:
    """Return the load of the busiest of ``members`` over the mean, if ``weighted`` assigns these partitions."""
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
    """Return the loads if these keys were spread evenly over all partitions."""
    everywhere = sum(each.load for each in keys) / len(load)
    changed = [one + everywhere for one in load]
    for each in keys:
        changed[each.partition] -= each.load
    return changed


def _more(load: Sequence[float], hot: Sequence[HotKey], times: int, partition_of: PartitionOf) -> list[float]:
    """Return the loads of ``times`` as many partitions."""
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
            f"Over all hours the partitions are even, but {apart.uneven} of {apart.of} hours are not. Mean loads"
            " hide that: let the group measure its load live, and split keys that are hot for an hour."
        )
    if uneven <= EVEN:
        return "The partitions are even enough: change nothing."
    if hot and hot[0].load * count > EVEN * total:
        share, fair = hot[0].load / total, hot[0].load * count / total
        return (
            f"The hottest key alone has {share:.0%} of the load, {fair:.1f} times the fair share of a partition. More"
            " partitions do not help: give its records a finer key, or spread them (add a number to the key)."
        )
    key = apart.worst.hottest if apart is not None else None
    if apart is not None and key is not None and key.load * count > EVEN * (total_then := sum(apart.worst.load)):
        return (
            "No key is too large over all hours, but in the worst one a single key has"
            f" {key.load / total_then:.0%} of the load. More partitions do not help: split such keys."
        )
    better = min(what_if[-len(TIMES) :], key=lambda each: each.max_over_mean) if by_hash else None
    if better is not None and better.max_over_mean < uneven:
        return (
            f"No single key is too large; some share a partition by chance. With {better.change} the busiest of"
            f" {count} members could have {better.max_over_mean:.2f} times the mean."
        )
    if by_hash:
        return (
            "No single key is too large, and more partitions would not separate keys that share one: change the keys."
        )
    return (
        "No single hot key explains it, and producers did not choose the partitions by Kafka's hash of the key: check"
        " how they choose them."
    )
