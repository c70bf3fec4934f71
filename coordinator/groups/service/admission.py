"""Answers requests that do not reach a group: invalid ones, and those of missing groups.

Mirrors the checks of Kafka's ``GroupCoordinatorService`` and the lookups of ``GroupCoordinatorShard``.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.groups.effects import (
    CommitReply,
    ConsumerHeartbeatReply,
    DeleteReply,
    HeartbeatReply,
    JoinReply,
    LeaveReply,
    Left,
    ReplyBody,
    SyncReply,
)
from loadwise.coordinator.groups.events import (
    NO_MEMBER_ID,
    CommitOffsets,
    ConsumerHeartbeat,
    Delete,
    Event,
    Heartbeat,
    Join,
    KindHeartbeat,
    Leave,
    Request,
    Sync,
)
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.kind import GroupKind
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.protocol.error_codes import ErrorCode

_CLASSIC = "classic"
"""The type of classic groups in ListGroups."""


def refusal(group_id: str, event: Event, limits: GroupLimits, *, exists: bool, is_here: bool) -> ErrorCode:
    """Return Kafka's error before the group is asked; NONE if the group must handle the event.

    ``exists``: whether the group exists. ``is_here``: whether the call's broker coordinates it.
    """
    if isinstance(event, CommitOffsets):
        # The empty group id is valid here, as it was before groups had members.
        return ErrorCode.NONE if is_here else ErrorCode.NOT_COORDINATOR
    if not group_id and not isinstance(event, Delete):
        return ErrorCode.INVALID_GROUP_ID
    if isinstance(event, Join):
        if not limits.min_session_timeout_ms <= event.session_timeout_ms <= limits.max_session_timeout_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if is_here and not exists and event.member_id != NO_MEMBER_ID:
            return ErrorCode.UNKNOWN_MEMBER_ID
    if not is_here:
        return ErrorCode.NOT_COORDINATOR
    if not exists and not isinstance(event, Join | ConsumerHeartbeat | KindHeartbeat):
        return ErrorCode.GROUP_ID_NOT_FOUND if isinstance(event, Delete) else ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def misplaced(group: Group, event: Event, kinds: Mapping[str, GroupKind]) -> tuple[ErrorCode, str | None]:
    """Return Kafka's error for a request to another kind of group; NONE if the kind is right."""
    if isinstance(event, KindHeartbeat):
        may_replace = (
            kinds[event.kind].replaces_classic and group.type == _CLASSIC and not group.members and event.epoch == 0
        )
        return (ErrorCode.NONE, None) if group.type == event.kind or may_replace else _not_a(event.kind, group)
    kind = kinds.get(group.type)
    if kind is not None:
        match event:
            case Join() if kind.replaces_classic and not group.members:
                pass
            case Join():
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None
            case Sync() | Heartbeat():
                return ErrorCode.UNKNOWN_MEMBER_ID, None
            case ConsumerHeartbeat():
                return _not_a("consumer", group)
            case _:
                pass
    return ErrorCode.NONE, None


def _not_a(kind: str, group: Group) -> tuple[ErrorCode, str]:
    return ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a {kind} group."


def refused(
    event: Request, error: ErrorCode, message: str | None = None, *, kinds: Mapping[str, GroupKind]
) -> ReplyBody:
    """Return the reply to a refused request. Only the newer heartbeats have the message."""
    match event:
        case ConsumerHeartbeat():
            return ConsumerHeartbeatReply(error=error, message=message)
        case KindHeartbeat():
            return kinds[event.kind].refused(error, message)
        case CommitOffsets():
            return CommitReply(error=error)
        case Join():
            return JoinReply(error=error, member_id=event.member_id)
        case Sync():
            return SyncReply(error=error)
        case Heartbeat():
            return HeartbeatReply(error=error)
        case Delete():
            return DeleteReply(error=error)
        case Leave() if error is ErrorCode.UNKNOWN_MEMBER_ID:
            # Kafka sets this error for each member, not for the request.
            return LeaveReply(leavers=[Left(*leaver, error) for leaver in event.leavers])
        case Leave():
            return LeaveReply(error=error)
