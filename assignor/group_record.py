"""The size of a classic group's record on its broker, which has a limit that the whole group runs into together.

Kafka keeps a group as one record (``GroupMetadataValue``): every member with its subscription and its assignment. Where
that record is larger than ``max.message.bytes`` of the topic ``__consumer_offsets``, SyncGroup answers every member
UNKNOWN_SERVER_ERROR, again and again. The leader alone has all that goes into it before that happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loadwise.assignor.subscription import JoinedMember

DEFAULT_LIMIT_BYTES = 1_048_588
"""Kafka's default of ``message.max.bytes``, which the topic of the groups inherits."""

_OF_BATCH = 100
"""Bytes of a batch and of a record beside its key and value, rounded up."""
_OF_MEMBER = 60
"""Bytes of a member beside its ids, its subscription and its assignment: lengths, timeouts, the address of its host."""


def estimated_bytes(joined: Iterable[JoinedMember], assignment: Mapping[str, bytes]) -> int:
    """Answer about how many bytes the record will have; a client id is taken to be as long as the member id."""
    total = _OF_BATCH
    for member in joined:
        ids = 2 * len(member.id.encode()) + len((member.instance_id or "").encode())
        total += _OF_MEMBER + ids + member.size_bytes + len(assignment[member.id])
    return total


def warning(estimate: int) -> str | None:
    """Answer what to tell the operator of a group whose record is too large for a default broker; None if it is not."""
    if estimate <= DEFAULT_LIMIT_BYTES:
        return None
    return (
        f"The record of this group has about {estimate:,} bytes, and a broker takes {DEFAULT_LIMIT_BYTES:,} by default:"
        " SyncGroup then fails for every member with UNKNOWN_SERVER_ERROR. Raise max.message.bytes of the topic"
        " __consumer_offsets, or read fewer topics in one group, or use the protocol of KIP-848"
    )
