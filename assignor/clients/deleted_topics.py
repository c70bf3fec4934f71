"""Commits of offsets whose partitions are gone: the topic was deleted, or made again with fewer partitions.

The broker answers UNKNOWN_TOPIC_OR_PARTITION, as it also does where it has not heard of a new topic yet. So clients try
again, in front of a rebalance for ever (aiokafka) or as long as a request may take (kafka-python), and the group waits.
(Java's ``ConsumerCoordinator`` fails such a commit and goes on.)

So an offset is dropped only where the broker's metadata answers that its partition is not there, and, beside other
brokers that may know more, still does so a moment later. A topic that may not be described, or that has another error,
is there for all that anybody knows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

log = logging.getLogger(__name__)

PATIENCE_S = 1.0
"""How long a partition must be missing before it counts as gone: of several brokers one may not have heard of a new
topic yet."""
_NO_ERROR, _UNKNOWN_TOPIC_OR_PARTITION = 0, 3


class Told(NamedTuple):
    """What a broker's metadata tells of topics."""

    partitions: Mapping[str, Collection[int]]
    """The partitions that there are, none of a topic that is not there; without the topics that nothing is told of."""
    brokers: int
    """How many brokers there are."""


def told(topics: Iterable[tuple[str, int, Iterable[int]]], brokers: int) -> Told:
    """Read what metadata has: each topic's name, error code and partitions, and the number of brokers."""
    certain = (_NO_ERROR, _UNKNOWN_TOPIC_OR_PARTITION)
    return Told({name: frozenset(numbers) for name, code, numbers in topics if code in certain}, brokers)


class DeletedTopics:
    """The topics that a group's member has seen go while it had offsets of them to commit."""

    def __init__(self, group_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._group_id = group_id
        self._clock = clock
        self._missing_since: dict[tuple[str, int], float] = {}
        self._told: set[str] = set()

    def drop(self, offsets: Mapping[Any, Any], told: Told) -> dict[Any, Any]:
        """The offsets without those of partitions that are gone; a warning names their topics."""
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
                "Offsets of group %s are not committed where partitions are gone, of %s: was the topic deleted?",
                self._group_id,
                ", ".join(gone),
            )
        return kept
