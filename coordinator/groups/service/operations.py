"""Operations of tests on a group: remove a member, end its session, force a rebalance.

Clients see what they would see in production: an administrator's LeaveGroup, a session without heartbeats, or a
rebalance that the leader requested.
"""

from __future__ import annotations

from loadwise.coordinator.errors import NoSuchGroupError, NoSuchMemberError
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import ExpireSession, ForceRebalance, Leave, Leaver
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.service.groups import OURS, Groups


def kick(groups: Groups, group_id: str, member: str, now_ms: int) -> list[Reply]:
    """Remove a member, by its member id or group instance id; return replies to other clients.

    Raises `NoSuchGroupError` and `NoSuchMemberError`.
    """
    group = existing_group(groups, group_id)
    member_id = _member_id(group, member)
    if group.type in groups.kinds:  # administrators cannot remove their members
        return groups.handle(group_id, ExpireSession(member_id=member_id), now_ms)
    replies = groups.handle(group_id, Leave(token=OURS, leavers=[Leaver(member_id, None)]), now_ms)
    replies += groups.finish(group_id)
    return [reply for reply in replies if reply.token != OURS]


def expire_session(groups: Groups, group_id: str, member: str, now_ms: int) -> list[Reply]:
    """End a member's session; raises like `kick`."""
    member_id = _member_id(existing_group(groups, group_id), member)
    return groups.handle(group_id, ExpireSession(member_id=member_id), now_ms)


def force_rebalance(groups: Groups, group_id: str, now_ms: int) -> list[Reply]:
    """Make all members rejoin; does nothing without members. Raises `NoSuchGroupError`."""
    existing_group(groups, group_id)
    return groups.handle(group_id, ForceRebalance(), now_ms)


def existing_group(groups: Groups, group_id: str) -> Group:
    """Return the group of this id. Raises `NoSuchGroupError`."""
    group = groups.get(group_id)
    if group is None:
        known = ", ".join(sorted(groups.all())) or "none"
        raise NoSuchGroupError(f"there is no group {group_id!r}; existing ones: {known}")
    return group


def _member_id(group: Group, name: str) -> str:
    for member in group.members.values():
        if name in {member.member_id, member.instance_id}:
            return member.member_id
    known = ", ".join(group.members) or "none"
    raise NoSuchMemberError(f"group {group.group_id!r} has no member {name!r}; its members: {known}")
