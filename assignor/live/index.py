"""Numbers for partitions, in the order of their first reading, so that readings are arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from loadwise.assignor.model import Floats, GroupSnapshot, Ints

_UNREAD = -1


class _Columns(NamedTuple):
    """The partitions as arrays."""

    topics: tuple[str, ...]
    topic_of: Ints
    number: Ints


class PartitionIndex:
    """Numbers for partitions. They do not change, except by `keep`."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int], int] = {}
        self._columns: _Columns | None = None
        self._last: tuple[list[tuple[str, int]], Ints] = [], np.empty(0, np.int64)
        """The last argument and result of `rows`, because readings mostly have the same partitions."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Number the partitions that have no number yet."""
        for partition in partitions:
            self._rows.setdefault(partition, len(self._rows))

    def keep(self, rows: Ints) -> None:
        """Drop all other partitions and number these from 0; `Table.pick` must get the same rows."""
        partitions = list(self._rows)
        self._rows = {partitions[row]: number for number, row in enumerate(rows.tolist())}
        self._columns, self._last = None, ([], np.empty(0, np.int64))

    def rows(self, partitions: Collection[tuple[str, int]]) -> Ints:
        """Return int64[n]: the numbers of partitions; number those that have none yet."""
        asked = list(partitions)
        if asked != self._last[0]:
            self.add(asked)
            self._last = asked, np.fromiter(map(self._rows.__getitem__, asked), np.int64, len(asked))
        return self._last[1]

    def spread(self, rows: Ints, values: Floats) -> Floats:
        """Return float64[P]: the values at their rows, NaN elsewhere."""
        array = np.full(len(self._rows), math.nan)
        array[rows] = values
        return array

    def array(self, values: Mapping[tuple[str, int], float]) -> Floats:
        """Return float64[P]: the value of each partition, NaN if it has none."""
        rows = self.rows(values.keys())
        return self.spread(rows, np.fromiter(values.values(), np.float64, len(values)))

    def of_topics(self, values: Mapping[str, float], other: float) -> Floats:
        """Return float64[P]: the value of each partition's topic, ``other`` if it has none."""
        topics, topic_of, _ = self._as_columns()
        return np.array([values.get(topic, other) for topic in topics], np.float64)[topic_of]

    def from_topics(self, arrays: Mapping[str, Floats]) -> Floats:
        """Return float64[P]: the inverse of `by_topic`; NaN for partitions that the arrays lack."""
        topics, topic_of, number = self._as_columns()
        each = [arrays.get(topic, no_partitions()) for topic in topics]
        sizes = np.array([len(array) for array in each], np.int64)
        every = np.append(np.concatenate([*each, no_partitions()]), math.nan)
        places = (np.cumsum(sizes) - sizes)[topic_of] + number
        return every[np.where(number < sizes[topic_of], places, -1)]

    def topic_sums(self, array: Floats) -> dict[str, float]:
        """Return topic to the sum over its partitions, without unknown ones."""
        topics, topic_of, _ = self._as_columns()
        sums = np.bincount(topic_of, np.nan_to_num(array, nan=0.0), len(topics))
        return dict(zip(topics, sums.tolist(), strict=True))

    def by_topic(self, array: Floats) -> dict[str, Floats]:
        """Return topic to float64[its partitions], NaN if unknown."""
        topics, topic_of, number = self._as_columns()
        sizes = np.zeros(len(topics), np.int64)
        np.maximum.at(sizes, topic_of, number + 1)
        starts = np.cumsum(sizes) - sizes
        every = np.full(int(sizes.sum()), math.nan)
        every[starts[topic_of] + number] = array
        return dict(zip(topics, np.split(every, starts[1:]), strict=True)) if topics else {}

    def rows_of(self, group: GroupSnapshot) -> Ints:
        """Return int64[the group's partitions]: the number of each, -1 if it has none."""
        return np.fromiter(
            (
                self._rows.get((topic, number), _UNREAD)
                for topic, count in zip(group.topics, np.diff(group.topic_start).tolist(), strict=True)
                for number in range(count)
            ),
            np.int64,
            group.size,
        )

    def _as_columns(self) -> _Columns:
        if self._columns is None or len(self._columns.number) != len(self._rows):
            place: dict[str, int] = {}
            topic_of = [place.setdefault(topic, len(place)) for topic, _ in self._rows]
            number = [number for _, number in self._rows]
            self._columns = _Columns(tuple(place), np.array(topic_of, np.int64), np.array(number, np.int64))
        return self._columns


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """A record of arrays whose last axis is the partitions of an index, and of further tables."""

    def spread(self, size: int) -> Self:
        """Return the table for ``size`` partitions, with NaN for the new ones."""
        return self._changed(lambda array: np.pad(array, _behind(array, size), constant_values=math.nan))

    def pick(self, rows: Ints) -> Self:
        """Return the table of these partitions only."""
        return self._changed(lambda array: array[..., rows])

    def _changed(self, change: Callable[[Floats], Floats]) -> Self:
        changes: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Table):
                changes[field.name] = value._changed(change)
            elif isinstance(value, np.ndarray):
                changes[field.name] = change(value)
        return replace(self, **changes)


def no_partitions() -> Floats:
    """Return an array of a table before any partition is known."""
    return np.empty(0)


def _behind(array: Floats, size: int) -> list[tuple[int, int]]:
    return [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])]
