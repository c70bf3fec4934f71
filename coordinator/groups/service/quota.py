"""Limits of all groups together: members, groups, and bytes of subscriptions and assignments.

Kafka has no such limits. Here groups are in the memory of a test process, and every client could fill it.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.groups.events import ConsumerHeartbeat, Event, Join, KindHeartbeat, Sync
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.protocol.error_codes import ErrorCode


class Quota:
    """The limits, with an upper bound of the current use, so that it is rarely counted."""

    def __init__(self, limits: GroupLimits) -> None:
        self._limits = limits
        self._at_most_bytes: int | None = None
        """Bytes at the last count and accepted since then; None before the first count."""
        self._at_most_members: int | None = None
        """The same for members."""

    def error(self, groups: Mapping[str, Group], group_id: str, event: Event) -> ErrorCode:
        """Return the error of an event that exceeds a limit, else NONE.

        O(groups) if a count is needed, else O(1).
        """
        group = groups.get(group_id)
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
