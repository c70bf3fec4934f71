"""How much all groups may keep together: members, groups, and the bytes that members say of themselves.

Kafka has no such limits. Here groups are in the memory of somebody's test run, and anybody who can connect may fill it.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.classic import ClassicGroup, GroupLimits
from loadwise.coordinator.consumer import ConsumerGroup
from loadwise.coordinator.events import ConsumerHeartbeat, Event, Join, Sync
from loadwise.protocol.error_codes import ErrorCode


def quota_error(
    groups: Mapping[str, ClassicGroup | ConsumerGroup], limits: GroupLimits, group_id: str, event: Event
) -> ErrorCode:
    """Why an event asks for more than is left; NONE for what does not. O(members of all groups) for a new member."""
    group = groups.get(group_id)
    match event:
        case Join():
            is_new = group is None or event.member_id not in group.members
            more_bytes = sum(len(metadata) for _, metadata in event.protocols)
        case ConsumerHeartbeat() if event.epoch == 0:
            is_new = group is None or event.member_id not in group.members
            more_bytes = sum(map(len, event.topics or ()))
        case Sync() if event.assignments:
            is_new = False
            more_bytes = sum(len(assignment) for _, assignment in event.assignments)
        case _:
            return ErrorCode.NONE
    if group is None and len(groups) >= limits.max_groups:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if is_new and sum(map(_size, groups.values())) >= limits.max_members:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    if more_bytes + sum(map(_kept_bytes, groups.values())) > limits.max_member_bytes:
        # What Kafka answers to a SyncGroup where a group's record is larger than its log takes.
        return ErrorCode.UNKNOWN_SERVER_ERROR if isinstance(event, Sync) else ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE


def _size(group: ClassicGroup | ConsumerGroup) -> int:
    return len(group.members) + (group.expected if isinstance(group, ClassicGroup) else 0)


def _kept_bytes(group: ClassicGroup | ConsumerGroup) -> int:
    if isinstance(group, ClassicGroup):
        return sum(
            len(member.assignment) + sum(len(metadata) for _, metadata in member.protocols)
            for member in group.members.values()
        )
    return sum(sum(map(len, member.subscription.topics)) for member in group.members.values())
