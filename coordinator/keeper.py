"""The interface between the state of a cluster and its storage.

Each change is passed to the keeper as a value under a place. Values are immutable and contain everything that is needed
to restore the state. `NOTHING` stores nothing, for a cluster in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

T = TypeVar("T")

Place: TypeAlias = tuple[str | int, ...]
"""The key of a value: its kind, then what identifies it within the kind."""


class LogName(NamedTuple):
    """The partition of a log."""

    topic_id: UUID
    partition: int


class KeptBatch(NamedTuple):
    """A record batch as its log stores it."""

    data: bytes
    last_offset: int
    """Offset of its last record."""
    max_timestamp_ms: int


class LogContents(NamedTuple):
    """The batches of a log, shared with it, since they never change."""

    batches: Sequence[bytes]
    last_offsets: Sequence[int]
    max_timestamps_ms: Sequence[int]

    @classmethod
    def of(cls, batches: Iterable[KeptBatch]) -> LogContents:
        """Return the stored batches of a log, from the first on."""
        rows = list(batches)
        return cls(
            [each.data for each in rows],
            [each.last_offset for each in rows],
            [each.max_timestamp_ms for each in rows],
        )

    def kept(self) -> Iterable[KeptBatch]:
        """Return each stored batch."""
        return map(KeptBatch, *self)


NO_CONTENTS = LogContents((), (), ())
"""The contents of an empty log."""


class Forked:
    """A value about a producer which is not restored as it was, because the producer may have gone on since then."""

    __slots__ = ()

    producer_id: int

    def forked(self) -> object:
        """Return the value to restore."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at one moment, from ``coordinator.snapshot()``.

    It can be restored any number of times, also into another coordinator with the same brokers. It shares all record
    batches with its cluster, because batches and values never change. It contains the salted passwords of SCRAM users.
    """

    values: Sequence[tuple[Place, object]] = field(repr=False)
    """All values with their places, in an order in which they can be loaded."""
    logs: Mapping[LogName, LogContents] = field(repr=False)
    """The record batches of each partition that is not empty."""

    def of(self, kind: type[T]) -> list[T]:
        """Return the values of a type."""
        return [value for _, value in self.values if isinstance(value, kind)]


class Keeper:
    """Stores state, and decides itself when the state is safe. This one stores nothing."""

    def replace(self, state: Snapshot) -> None:
        """Store this state instead of the previous one."""

    def put(self, place: Place, value: object) -> None:
        """Store a value, and replace the previous one in its place."""

    def drop(self, place: Place) -> None:
        """Delete the value in a place, if there is one."""

    def append(self, log: LogName, batch: KeptBatch) -> None:
        """Store one more batch at the end of a log."""

    def drop_before(self, log: LogName, offset: int) -> None:
        """Delete the batches of a log that end before an offset."""

    def drop_log(self, log: LogName) -> None:
        """Delete a log."""


NOTHING: Final = Keeper()
"""Stores nothing."""


class DataDirectory(Keeper, ABC):
    """Stores state in files; `loadwise.coordinator.storage.directory.Directory` implements it."""

    @property
    @abstractmethod
    def has_changes(self) -> bool:
        """Return whether there are changes since the last commit."""

    @abstractmethod
    def read(self) -> Snapshot:
        """Return the stored state."""

    @abstractmethod
    def commit(self) -> None:
        """Store the changes. Raises `DataDirError`."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""
