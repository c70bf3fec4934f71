"""Partitions by number, in the order in which they were first read, so that readings are arrays."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from loadwise.assignor.model import Floats, GroupSnapshot, Ints

_UNREAD = -1


class PartitionIndex:
    """Numbers for partitions. They stay as they are, except where `keep` takes them back."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Number the partitions that have no number yet."""
        for partition in partitions:
            self._rows.setdefault(partition, len(self._rows))

    def keep(self, rows: Ints) -> None:
        """Forget all but these, the first of which is number 0 from now on; arrays are to be picked by them as well."""
        partitions = list(self._rows)
        self._rows = {partitions[row]: number for number, row in enumerate(rows.tolist())}

    def rows(self, partitions: Collection[tuple[str, int]]) -> Ints:
        """int64[n]: the numbers of partitions, which those that have none get now."""
        if not self._rows.keys() >= set(partitions):
            self.add(partitions)
        return np.fromiter(map(self._rows.__getitem__, partitions), np.int64, len(partitions))

    def spread(self, rows: Ints, values: Floats) -> Floats:
        """float64[P]: values at their rows, NaN elsewhere."""
        array = np.full(len(self._rows), math.nan)
        array[rows] = values
        return array

    def array(self, values: Mapping[tuple[str, int], float]) -> Floats:
        """float64[P]: the value of each partition, NaN where there is none."""
        rows = self.rows(values.keys())
        return self.spread(rows, np.fromiter(values.values(), np.float64, len(values)))

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
