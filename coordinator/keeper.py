"""Where the state of a cluster is kept over restarts: the one interface between what changes it and what stores it.

Whoever holds state tells its keeper each change, as a value under a place; the value is immutable, and all that is
needed to have the state back. `NOTHING` keeps nothing: a cluster in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias, TypeVar
from uuid import UUID

T = TypeVar("T")

Place: TypeAlias = tuple[str | int, ...]
"""Under what a value is kept: its kind first, then what tells it from others of its kind."""


class LogName(NamedTuple):
    """Which partition a log is of."""

    topic_id: UUID
    partition: int


class KeptBatch(NamedTuple):
    """A record batch as its log has it."""

    data: bytes
    last_offset: int
    """Offset of its last record."""
    max_timestamp_ms: int


class LogContents(NamedTuple):
    """The batches of a log, shared with it: they never change."""

    batches: Sequence[bytes]
    last_offsets: Sequence[int]
    max_timestamps_ms: Sequence[int]

    @classmethod
    def of(cls, batches: Iterable[KeptBatch]) -> LogContents:
        """The batches of a log as they were kept, from the first on."""
        rows = list(batches)
        return cls(
            [each.data for each in rows],
            [each.last_offset for each in rows],
            [each.max_timestamp_ms for each in rows],
        )

    def kept(self) -> Iterable[KeptBatch]:
        """Each batch as it is kept."""
        return map(KeptBatch, *self)


NO_CONTENTS = LogContents((), (), ())
"""An empty log's."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at one moment, to be put back any number of times: ``coordinator.snapshot()`` answers it.

    It may be put back into another coordinator that has the same brokers. It shares all record batches with the cluster
    that it was taken of, which goes on: batches and values never change. It has the salted passwords of SCRAM, where
    there are any.
    """

    values: Sequence[tuple[Place, object]] = field(repr=False)
    """All values with their places, in an order in which they can be read back."""
    logs: Mapping[LogName, LogContents] = field(repr=False)
    """The record batches of each partition that has any."""

    def of(self, kind: type[T]) -> list[T]:
        """The values of a type."""
        return [value for _, value in self.values if isinstance(value, kind)]


class Keeper(Protocol):
    """Keeps what it is told; when it is safe is its own business."""

    def replace(self, state: Snapshot) -> None:
        """Keep this, and nothing of what there was."""

    def put(self, place: Place, value: object) -> None:
        """Keep a value in place of the one that was there."""

    def drop(self, place: Place) -> None:
        """Forget what was there, if anything was."""

    def append(self, log: LogName, batch: KeptBatch) -> None:
        """Keep one more batch at the end of a log."""

    def drop_before(self, log: LogName, offset: int) -> None:
        """Forget the batches of a log whose records are all before an offset."""

    def drop_log(self, log: LogName) -> None:
        """Forget a log."""


class _Nothing:
    def replace(self, state: Snapshot) -> None:
        pass

    def put(self, place: Place, value: object) -> None:
        pass

    def drop(self, place: Place) -> None:
        pass

    def append(self, log: LogName, batch: KeptBatch) -> None:
        pass

    def drop_before(self, log: LogName, offset: int) -> None:
        pass

    def drop_log(self, log: LogName) -> None:
        pass


NOTHING: Final[Keeper] = _Nothing()
"""Keeps nothing."""
