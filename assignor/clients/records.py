"""Count the records of a poll by topic; kafka-python and aiokafka return them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any


def by_topic(records: Mapping[Any, Sized]) -> dict[str, int]:
    """Return the number of records of each topic that has any. ``records`` is by partition."""
    counts: dict[str, int] = {}
    for partition, some in records.items():
        if some:
            counts[partition.topic] = counts.get(partition.topic, 0) + len(some)
    return counts
