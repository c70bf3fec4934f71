"""The size of a classic group's record on the broker, which limits the size of a group.

Kafka stores a group as one record (``GroupMetadataValue``) with every member's subscription and assignment. If the
record is larger than ``max.message.bytes`` of ``__consumer_offsets``, every SyncGroup of every member fails with
UNKNOWN_SERVER_ERROR. The leader can warn earlier because it sees all parts of the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadwise.assignor.subscription import JoinedMember

DEFAULT_LIMIT_BYTES = 1_048_588
"""Kafka's default of ``message.max.bytes``, which ``__consumer_offsets`` inherits."""

_OF_BATCH = 100
"""Bytes of a batch and a record without key and value, rounded up."""
_OF_MEMBER = 60
"""Bytes of a member without its ids, subscription and assignment: lengths, timeouts, the host's address."""


def estimated_bytes(joined: Iterable[JoinedMember], assignment: Mapping[str, bytes]) -> int:
    """Return the estimated size of the record. A client id is assumed to be as long as the member id."""
    total = _OF_BATCH
    for member in joined:
        ids = 2 * len(member.id.encode()) + len((member.instance_id or "").encode())
        total += _OF_MEMBER + ids + member.size_bytes + len(assignment[member.id])
    return total


def warning(estimate: int) -> str | None:
    """Return a warning if the record is too large for a default broker, else None."""
    if estimate <= DEFAULT_LIMIT_BYTES:
        return None
    return (
        f"The record of this group has about {estimate:,} bytes; a broker accepts {DEFAULT_LIMIT_BYTES:,} by default."
        " SyncGroup then fails for every member with UNKNOWN_SERVER_ERROR. Raise max.message.bytes of the topic"
        " __consumer_offsets, or read fewer topics in one group, or use the protocol of KIP-848"
    )
