"""Commits of offsets whose partitions are gone: the topic was deleted, or made again with fewer partitions.

The broker answers UNKNOWN_TOPIC_OR_PARTITION, as it also does where it has not heard of a new topic yet. So clients try
again, in front of a rebalance for ever (aiokafka) or as long as a request may take (kafka-python), and the group waits.
(Java's ``ConsumerCoordinator`` fails such a commit and goes on.)
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

log = logging.getLogger(__name__)


class DeletedTopics:
    """The topics that a group's member has seen go while it had offsets of them to commit."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._told: set[str] = set()

    def drop(self, offsets: Mapping[Any, Any], there: Collection[tuple[str, int]]) -> dict[Any, Any]:
        """The offsets of those partitions that are there, as the broker's metadata tells; a warning of the others."""
        kept = {partition: at for partition, at in offsets.items() if tuple(partition) in there}
        gone = sorted({partition.topic for partition in offsets if partition not in kept} - self._told)
        if gone:
            self._told.update(gone)
            log.warning(
                "Offsets of group %s are not committed where partitions are gone, of %s: was the topic deleted?",
                self._group_id,
                ", ".join(gone),
            )
        return kept
