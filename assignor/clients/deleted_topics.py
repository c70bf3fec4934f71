"""Drop commits for deleted partitions: the topic was deleted, or recreated with fewer partitions.

The broker answers UNKNOWN_TOPIC_OR_PARTITION, as it does for a new topic that it has not seen yet. So clients retry
before a rebalance, forever (aiokafka) or for a request timeout (kafka-python), and the group waits. (Java's
``ConsumerCoordinator`` fails such a commit and continues.)

An offset is dropped only if the broker's metadata says that its partition does not exist. With several brokers, it must
still say so a moment later. A topic that may not be described, or has another error, is assumed to exist.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""How long a partition must be missing before its offsets are dropped: one of several brokers may not have seen a new
topic yet."""
_NO_ERROR, _UNKNOWN_TOPIC_OR_PARTITION = 0, 3


class Told(NamedTuple):
    """What a broker's metadata says about topics."""

    partitions: Mapping[str, Collection[int]]
    """The existing partitions by topic, empty for a missing topic; topics with another error are left out."""
    brokers: int
    """The number of brokers."""


def told(topics: Iterable[tuple[str, int, Iterable[int]]], brokers: int) -> Told:
    """Convert metadata: each topic's name, error code and partitions, and the number of brokers."""
    certain = (_NO_ERROR, _UNKNOWN_TOPIC_OR_PARTITION)
    return Told({name: frozenset(numbers) for name, code, numbers in topics if code in certain}, brokers)


class DeletedTopics:
    """The deleted topics for which a group member had offsets to commit."""

    def __init__(self, group_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._group_id = group_id
        self._clock = clock
        self._missing_since: dict[tuple[str, int], float] = {}
        self._told: set[str] = set()

    def drop(self, offsets: Mapping[Any, Any], told: Told) -> dict[Any, Any]:
        """Return the offsets without those of deleted partitions; a warning names their topics."""
        now_s, there = self._clock(), told.partitions
        patience_s = PATIENCE_S if told.brokers > 1 else 0.0
        kept = {}
        for partition, at in offsets.items():
            topic, number = place = tuple(partition)
            if topic not in there or number in there[topic]:
                self._missing_since.pop(place, None)
                kept[partition] = at
            elif now_s - self._missing_since.setdefault(place, now_s) < patience_s:
                kept[partition] = at
        gone = sorted({partition.topic for partition in offsets if partition not in kept} - self._told)
        if gone:
            self._told.update(gone)
            log.warning(
                "Offsets of group %s are not committed for missing partitions of %s: was the topic deleted?",
                self._group_id,
                ", ".join(gone),
            )
        return kept
