"""What a poll has given, by topic: kafka-python's and aiokafka's clients answer it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any


def by_topic(records: Mapping[Any, Sized]) -> dict[str, int]:
    """Topic to how many records there are of it; none of a topic is not named. ``records`` is by partition."""
    counts: dict[str, int] = {}
    for partition, some in records.items():
        if some:
            counts[partition.topic] = counts.get(partition.topic, 0) + len(some)
    return counts
