"""The switch of a group's rebalances for the load: metadata of an offset, committed in a group beside it.

Brokers refuse a commit of a stranger into a group that has members, so the note of ``billing`` is committed in the
group ``billing.loadwise``, which has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

_NOTE = "loadwise-live:1"


@dataclass(frozen=True, slots=True, order=True)
class LiveSwitch:
    """The newest use of the switch."""

    since_ms: int
    """When it was used, in ms since 1970."""
    off: bool
    """Whether no rebalance for the load may be requested."""
    written_ms: int = 0
    """When the note was written, or renewed last: brokers drop old ones."""

    def __str__(self) -> str:
        """Return the state in words."""
        since = datetime.fromtimestamp(self.since_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"rebalances for the load are {'off' if self.off else 'on'} since {since}"

    def encode(self) -> str:
        """Return the metadata, with a zero at its end, because confluent-kafka reads a string of C."""
        return f"{_NOTE} {'off' if self.off else 'on'} {self.since_ms} {self.written_ms} \0"

    @classmethod
    def decode(cls, metadata: str) -> LiveSwitch | None:
        """Read what `encode` wrote, of this version or a newer one that appends; None for other metadata."""
        name, _, rest = metadata.partition(" ")
        state, *times = rest.split(" ")
        if name != _NOTE or state not in {"off", "on"} or not all(each.isdecimal() for each in times[:2]):
            return None
        return cls(int(times[0]), state == "off", int(times[1])) if len(times) > 1 else None


def switch_group(group_id: str) -> str:
    """Return the group that has the notes of a group."""
    return f"{group_id}.loadwise"


def newest(notes: Iterable[str]) -> LiveSwitch | None:
    """Return the newest switch of some metadata; None without one."""
    return max((switch for note in notes if (switch := LiveSwitch.decode(note)) is not None), default=None)
