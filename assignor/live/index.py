"""Partitions by number, in the order in which they were first read, so that readings are arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from loadwise.assignor.model import Floats, GroupSnapshot, Ints

_UNREAD = -1


class PartitionIndex:
    """Numbers for partitions; they are never taken back."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Number the partitions that have no number yet."""
        for partition in partitions:
            self._rows.setdefault(partition, len(self._rows))

    def array(self, values: Mapping[tuple[str, int], float]) -> Floats:
        """float64[P]: the value of each partition, NaN where there is none. All of them must have a number."""
        rows = np.fromiter((self._rows[partition] for partition in values), np.int64, len(values))
        array = np.full(len(self._rows), math.nan)
        array[rows] = np.fromiter(values.values(), np.float64, len(values))
        return array

    def padded(self, array: Floats) -> Floats:
        """The array, longer by NaN for partitions that were numbered since."""
        missing = len(self._rows) - len(array)
        return np.concatenate([array, np.full(missing, math.nan)]) if missing else array

    def of_topics(self, values: Mapping[str, float], other: float) -> Floats:
        """float64[P]: the value of each partition's topic, ``other`` where there is none."""
        return np.fromiter((values.get(topic, other) for topic, _ in self._rows), np.float64, len(self._rows))

    def by_topic(self, array: Floats) -> dict[str, Floats]:
        """Topic to float64[its partitions], NaN where unknown."""
        sizes: dict[str, int] = {}
        for topic, number in self._rows:
            sizes[topic] = max(sizes.get(topic, 0), number + 1)
        answer = {topic: np.full(size, math.nan) for topic, size in sizes.items()}
        for (topic, number), value in zip(self._rows, array.tolist(), strict=True):
            answer[topic][number] = value
        return answer

    def rows_of(self, group: GroupSnapshot) -> Ints:
        """int64[the group's partitions]: the number of each, -1 for those without one."""
        return np.fromiter(
            (
                self._rows.get((topic, number), _UNREAD)
                for topic, count in zip(group.topics, np.diff(group.topic_start).tolist(), strict=True)
                for number in range(count)
            ),
            np.int64,
            group.size,
        )

    @staticmethod
    def pick(array: Floats, rows: Ints) -> Floats:
        """float64[n]: the array's values at these rows, NaN where a row is -1."""
        return np.append(array, math.nan)[rows]
