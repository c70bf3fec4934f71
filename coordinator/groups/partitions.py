"""A partition by its topic's name, and a group's committed offset in it."""

from __future__ import annotations

from typing import NamedTuple


class Partition(NamedTuple):
    """A partition by name."""

    topic: str
    number: int


class CommittedOffset(NamedTuple):
    """The committed offset of a group in a partition."""

    offset: int
    """The next offset to read."""
    leader_epoch: int
    """Leader epoch of the last record read; -1 if unknown."""
    metadata: str
    """Free text of the client."""
    committed_ms: int = 0
    """When it was committed, by the coordinator's clock."""
    expires_ms: int | None = None
    """When it expires by its client's retention time (OffsetCommit v2 to v4); None: by the broker's setting."""


_OVERHEAD_BYTES = 100


def size_bytes_of(partition: Partition, committed: CommittedOffset | None) -> int:
    """Return the approximate bytes of an offset in memory; None is one whose text is dropped."""
    return _OVERHEAD_BYTES + len(partition.topic) + (0 if committed is None else len(committed.metadata))
