"""How far polls advance, by topic: offsets, as the demand of a partition is measured.

Markers of transactions and compacted records have offsets, too. kafka-python and aiokafka return polls alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class Advances:
    """The offsets that one consumer's polls have covered."""

    def __init__(self) -> None:
        self._next: dict[Any, int] = {}  # the offset after the last record of each partition

    def of(self, records: Mapping[Any, Sequence[Any]]) -> dict[str, int]:
        """Return the offsets of each topic that a poll covers. ``records`` is by partition, in the order of offsets.

        A gap before the first record counts, unless it is longer than what the poll covers: that may be a seek.
        """
        counts: dict[str, int] = {}
        for partition, some in records.items():
            if not some:
                continue
            first, end = some[0].offset, some[-1].offset + 1
            covered, gap = end - first, first - self._next.get(partition, first)
            counts[partition.topic] = counts.get(partition.topic, 0) + covered + (gap if 0 < gap <= covered else 0)
            self._next[partition] = end
        return counts
