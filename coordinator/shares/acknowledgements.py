"""What members of a share group tell of records that they acquired, and why that may not be taken in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from loadwise.coordinator.shares.in_flight import NOBODY, Delivery, RecordState
from loadwise.protocol.error_codes import ErrorCode


class AcknowledgeType(IntEnum):
    """What a member tells of a record that it acquired, with Kafka's numbers."""

    GAP = 0
    """There is no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    """Somebody else may have it."""
    REJECT = 3
    RENEW = 4
    """It is still at work: its lock begins anew (KIP-1222)."""


SETTLED: Mapping[int, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""What becomes of a record that its member tells this of; a lock that begins anew changes nothing else."""


class Acknowledgement(NamedTuple):
    """What a member tells of some records next to each other."""

    first: int
    last: int
    types: Sequence[int]
    """One `AcknowledgeType` for each, or one for all of them."""


class Refusal(NamedTuple):
    """Why an acknowledgement is not taken in."""

    error: ErrorCode
    message: str


def ownership_problem(delivery: Delivery, member_id: str, what: str) -> Refusal | None:
    """Why a member may not tell what becomes of this delivery, of a ``batch`` or an ``offset``; None if it may."""
    if delivery.member_id == NOBODY:
        return record_state_problem(f"The {what} cannot be acknowledged. The {what} is not in the acquired state.")
    if delivery.member_id != member_id:
        return record_state_problem(f"Member is not the owner of {what} record")
    return None


def record_state_problem(message: str) -> Refusal:
    """INVALID_RECORD_STATE, with its reason."""
    return Refusal(ErrorCode.INVALID_RECORD_STATE, message)
