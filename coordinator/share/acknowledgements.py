"""How share group members acknowledge records, and why an acknowledgement may fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from loadwise.coordinator.share.in_flight import NOBODY, Delivery, RecordState
from loadwise.protocol.error_codes import ErrorCode


class AcknowledgeType(IntEnum):
    """How a member acknowledges a record, with Kafka's numbers."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    """Another member may acquire it."""
    REJECT = 3
    RENEW = 4
    """The member is still processing it; its lock is renewed (KIP-1222)."""


SETTLED: Mapping[int, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""The state of a record after this acknowledgement; a renewed lock changes nothing else."""


class Acknowledgement(NamedTuple):
    """A member's acknowledgement of consecutive records."""

    first: int
    last: int
    types: Sequence[int]
    """One `AcknowledgeType` for each, or one for all."""


class AcknowledgeRefusal(NamedTuple):
    """Why an acknowledgement fails."""

    error: ErrorCode
    message: str


def ownership_problem(delivery: Delivery, member_id: str, what: str) -> AcknowledgeRefusal | None:
    """Return why a member may not acknowledge a ``batch`` or an ``offset``; None if it may."""
    if delivery.member_id == NOBODY:
        return record_state_problem(f"The {what} cannot be acknowledged. The {what} is not in the acquired state.")
    if delivery.member_id != member_id:
        return record_state_problem(f"Member is not the owner of {what} record")
    return None


def record_state_problem(message: str) -> AcknowledgeRefusal:
    """Return INVALID_RECORD_STATE with a message."""
    return AcknowledgeRefusal(ErrorCode.INVALID_RECORD_STATE, message)
