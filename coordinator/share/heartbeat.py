"""ShareGroupHeartbeat (KIP-932) as an event of its group, and the reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from loadwise.coordinator.groups.consumer_records import Partitions
from loadwise.coordinator.groups.effects import EpochHeartbeatReply
from loadwise.coordinator.groups.events import KindHeartbeat


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeat(KindHeartbeat):
    """A member joins, is alive, changes or leaves. None in a field means unchanged."""

    kind: ClassVar[str] = "share"

    rack: str | None = None
    topics: Sequence[str] | None = None

    @property
    def size_bytes(self) -> int | None:
        """Return the bytes of its topics' names."""
        return sum(map(len, self.topics or ())) if self.topics or self.epoch == 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeatReply(EpochHeartbeatReply):
    """The answer to a `ShareHeartbeat`."""

    assigned: Partitions | None = None
    """Its partitions by topic id; None: unchanged."""
