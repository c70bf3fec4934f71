"""Answers requests that do not reach a group: invalid ones, those of missing groups, and those above a limit.

Mirrors the checks of Kafka's ``GroupCoordinatorService`` and the lookups of ``GroupCoordinatorShard``. Kafka does not
limit the members, groups and bytes of all groups together. Here groups are in the memory of a test process, and every
client could fill it.
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
    Reply,
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


class Admission:
    """The checks before a group is asked. Keeps an upper bound of the current use, so that it is rarely counted."""

    def __init__(self, limits: GroupLimits, kinds: Mapping[str, GroupKind]) -> None:
        self._limits = limits
        self._kinds = kinds
        self._at_most_bytes: int | None = None
        """Bytes at the last count and accepted since then; None before the first count."""
        self._at_most_members: int | None = None
        """The same for members."""

    def refusal(
        self, groups: Mapping[str, Group], group_id: str, event: Event, *, is_here: bool = True
    ) -> tuple[ErrorCode, str | None]:
        """Return Kafka's error before the group is asked, and its message; NONE if the group must handle the event.

        ``is_here``: whether the call's broker coordinates the group. O(groups) if a count is needed, else O(1).
        """
        group = groups.get(group_id)
        error = self._invalid(group_id, event, exists=group is not None, is_here=is_here)
        if error is ErrorCode.NONE:
            error = self._too_much(groups, group, event)
        if error is ErrorCode.NONE and group is not None:
            return _misplaced(group, event, self._kinds)
        return error, None

    def refused(self, event: Request, error: ErrorCode, message: str | None = None) -> Reply:
        """Return the reply to a refused request. Only the newer heartbeats have the message."""
        return Reply(event.token, _body(event, error, message, self._kinds))

    def _invalid(self, group_id: str, event: Event, *, exists: bool, is_here: bool) -> ErrorCode:
        if isinstance(event, CommitOffsets):
            # The empty group id is valid here, as it was before groups had members.
            return ErrorCode.NONE if is_here else ErrorCode.NOT_COORDINATOR
        if not group_id and not isinstance(event, Delete):
            return ErrorCode.INVALID_GROUP_ID
        if isinstance(event, Join):
            shortest_ms, longest_ms = self._limits.min_session_timeout_ms, self._limits.max_session_timeout_ms
            if not shortest_ms <= event.session_timeout_ms <= longest_ms:
                return ErrorCode.INVALID_SESSION_TIMEOUT
            if is_here and not exists and event.member_id != NO_MEMBER_ID:
                return ErrorCode.UNKNOWN_MEMBER_ID
        if not is_here:
            return ErrorCode.NOT_COORDINATOR
        if not exists and not isinstance(event, Join | ConsumerHeartbeat | KindHeartbeat):
            return ErrorCode.GROUP_ID_NOT_FOUND if isinstance(event, Delete) else ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE

    def _too_much(self, groups: Mapping[str, Group], group: Group | None, event: Event) -> ErrorCode:
        match event:
            case Join():
                is_new = group is None or event.member_id not in group.members
                more_bytes = sum(len(metadata) for _, metadata in event.protocols)
            case ConsumerHeartbeat() if event.topics or event.regex or event.epoch == 0:
                is_new = group is None or event.member_id not in group.members
                more_bytes = sum(map(len, event.topics or ())) + len(event.regex or "")
            case KindHeartbeat() if (size_bytes := event.size_bytes) is not None:
                is_new = group is None or event.member_id not in group.members
                more_bytes = size_bytes
            case Sync() if event.assignments:
                is_new = False
                more_bytes = sum(len(assignment) for _, assignment in event.assignments)
            case _:
                return ErrorCode.NONE
        if group is None and len(groups) >= self._limits.max_groups:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if is_new and not self._has_place(groups):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self._has_room(groups, more_bytes):
            # Kafka's answer to a SyncGroup if the group's record is too large for its log.
            return ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(event, Sync) else ErrorCode.GROUP_MAX_SIZE_REACHED
        return ErrorCode.NONE

    def _has_place(self, groups: Mapping[str, Group]) -> bool:
        limit = self._limits.max_members
        if self._at_most_members is None or self._at_most_members >= limit:
            self._at_most_members = sum(each.num_members for each in groups.values())
        if self._at_most_members >= limit:
            return False
        self._at_most_members += 1
        return True

    def _has_room(self, groups: Mapping[str, Group], more_bytes: int) -> bool:
        limit = self._limits.max_member_bytes
        if self._at_most_bytes is None or self._at_most_bytes + more_bytes > limit:
            self._at_most_bytes = sum(each.size_bytes for each in groups.values())
        if self._at_most_bytes + more_bytes > limit:
            return False
        self._at_most_bytes += more_bytes
        return True


def _misplaced(group: Group, event: Event, kinds: Mapping[str, GroupKind]) -> tuple[ErrorCode, str | None]:
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


def _body(event: Request, error: ErrorCode, message: str | None, kinds: Mapping[str, GroupKind]) -> ReplyBody:
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
