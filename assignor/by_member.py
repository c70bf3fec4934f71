"""An assignment by names that builds a member's entry only when it is read.

A group of 1,000,000 partitions would need a million lists in 2,000 dictionaries. A leader sends bytes and never reads
most of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from loadwise.assignor.rows import Ints, Owners


class ByMember(Mapping[str, dict[str, list[int]]]):
    """Map each member id to its partitions by topic, ascending. Immutable; equal to any mapping of the same content.

    A cell holds the partitions that one member has of one topic. ``count``, int64[M], is the number of cells of each
    member. ``topic``, int32[C], is the index of each cell's topic in ``topics``. ``start``, int64[C], is where its
    partitions begin in ``partition``, int32[n].
    """

    def __init__(
        self,
        members: Sequence[str],
        topics: Sequence[str],
        *,
        count: Ints,
        topic: Owners,
        start: Ints,
        partition: Owners,
    ) -> None:
        self._members, self._topics, self._topic, self._partition = members, topics, topic, partition
        self._first = np.concatenate(([0], np.cumsum(count)))
        self._start = np.append(start, len(partition))

    def __getitem__(self, member: str) -> dict[str, list[int]]:
        """Return the member's partitions by topic. O(C / M + P / M), built on each call."""
        first, stop = self._first[self._number[member] :][:2].tolist()
        edges = self._start[first : stop + 1].tolist()
        if not edges:
            return {}
        numbers = self._partition[edges[0] : edges[-1]].tolist()
        offset = edges[0]
        return {
            self._topics[topic]: numbers[begin - offset : end - offset]
            for topic, begin, end in zip(self._topic[first:stop].tolist(), edges[:-1], edges[1:], strict=True)
        }

    def __iter__(self) -> Iterator[str]:
        """Iterate over member ids in Kafka's order."""
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return repr(dict(self))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {member: number for number, member in enumerate(self._members)}
