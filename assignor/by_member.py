"""An assignment by names, made for each member when it is asked for.

A group of 1,000,000 partitions is a million lists in 2,000 dictionaries. A leader sends bytes and never looks at most
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from loadwise.assignor.rows import Ints, Owners


class ByMember(Mapping[str, dict[str, list[int]]]):
    """Member id to topic to its partitions, ascending; immutable, equal to any mapping of the same content.

    ``count`` is int64[M], how many cells each member has. A cell is what a member has of one topic: ``topic`` is its
    number in ``topics``, int32[C]; ``start`` is where its partitions begin in ``partition``, int64[C] and int32[n].
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
        """What a member has. O(C / M + P / M), made anew each time."""
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
        """Member ids in Kafka's order."""
        return iter(self._members)

    def __len__(self) -> int:
        """M."""
        return len(self._members)

    def __repr__(self) -> str:
        """As of the dictionary that it stands for."""
        return repr(dict(self))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {member: number for number, member in enumerate(self._members)}
