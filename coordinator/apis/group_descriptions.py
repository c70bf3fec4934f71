"""No API of its own: how DescribeGroups, and the same of consumer, share and streams groups, answer for many groups.

They stay bounded where groups are named repeatedly. All but the first have rows of one form, and check the same rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from loadwise.coordinator.apis.access import Access, after, allowed, bits, item_by_item, names
from loadwise.coordinator.authorization.acls import Operation, ResourceType
from loadwise.coordinator.calls import Call, Handler, Message, Outcome
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode

_Group = TypeVar("_Group")
NOT_ASKED = -(2**31)
"""The authorized operations of a group where they were not asked for."""


def described(
    group_ids: Iterable[str],
    describe: Callable[[str], Message],
    refuse: Callable[[str], Message],
    *,
    max_members: int,
) -> list[Message]:
    """A row for each id. A group is described once; beyond ``max_members`` in all rows together, ids are refused.

    All members that there can be fit into an answer once. So a small request cannot ask for gigabytes.
    """
    known: dict[str, Message] = {}
    rows = []
    members_left = max_members
    for group_id in group_ids:
        if group_id not in known:
            known[group_id] = describe(group_id)
        row = known[group_id]
        members_left -= len(row.members)
        rows.append(row if members_left >= 0 else refuse(group_id))
    return rows


def described_with_rights(
    call: Call,
    cluster: Cluster,
    group_row: Any,
    *,
    kind: str,
    find: Callable[[str], _Group | None],
    describe: Callable[[Cluster, _Group], Message],
) -> Message:
    """Describe each group by itself, with what the client may do to it if it asks for that.

    ``find`` answers the group of this ``kind`` (as ``share``) that an id has, and ``describe`` makes its row, which
    ``group_row`` is the class of. What is named again and again is refused where it would be more than all members
    that there can be.
    """

    def row(group_id: str) -> Message:
        group = find(group_id)
        if group is None or not cluster.coordinates(call, group_id):
            return _not_found(call, cluster, group_row, group_id, kind)
        return describe(cluster, group)

    groups = described(
        call.body.group_ids,
        row,
        lambda group_id: refused(
            group_row, group_id, ErrorCode.INVALID_REQUEST, f"Group {group_id} is named too often in one request."
        ),
        max_members=cluster.settings.groups.max_members,
    )
    if call.body.include_authorized_operations:
        access = Access(call, cluster)
        for group in groups:
            if group.error_code is ErrorCode.NONE:
                group.authorized_operations = bits(access.operations(ResourceType.GROUP, group.group_id))
    return call.response(throttle_time_ms=0, groups=groups)


def refused(group_row: Any, group_id: str, error: ErrorCode, message: str | None) -> Message:
    """The row of a group that is not described; ``group_row`` is the class of the response's groups."""
    return group_row(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
        authorized_operations=NOT_ASKED,
    )


def _not_found(call: Call, cluster: Cluster, group_row: Any, group_id: str, kind: str) -> Message:
    """The row of a group that there is none of this kind of here, as ``share``."""
    if not group_id:
        return refused(group_row, group_id, ErrorCode.INVALID_GROUP_ID, None)
    if not cluster.coordinates(call, group_id):
        return refused(group_row, group_id, ErrorCode.NOT_COORDINATOR, None)
    is_there = cluster.groups.get(group_id) is not None
    message = f"Group {group_id} is not a {kind} group." if is_there else f"Group {group_id} not found."
    return refused(group_row, group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)


def assigned_topics(assignments: Callable[[Message], Iterable[Message]]) -> Callable[[Message], Iterable[str]]:
    """The topics in a group's row, of whose members' rows ``assignments`` answers the assignments."""

    def topics(group: Message) -> Iterable[str]:
        rows = (assignment for member in group.members for assignment in assignments(member))
        return (each.topic_name for row in rows for each in row.topic_partitions)

    return topics


def guarding(
    group_row: Any,
    topics: Callable[[Message], Iterable[str]],
    message: str = "The group has described topic(s) that the client is not authorized to describe.",
) -> Callable[[Call, Cluster, Handler], Outcome]:
    """Describe no group either that reads a topic which the client may not describe.

    ``topics`` answers those of a group's row, and ``message`` is what such a client is told.
    """
    is_described = names(Operation.DESCRIBE, ResourceType.GROUP)

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        access = Access(call, cluster)

        def checked(response: Message) -> Message:
            for index, group in enumerate(response.groups):
                if any(allowed(access, Operation.DESCRIBE, ResourceType.TOPIC, name) for name in set(topics(group))):
                    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    response.groups[index] = refused(group_row, group.group_id, error, message)
            return response

        return item_by_item(is_described, call, cluster, lambda rest, _: after(rest, handle(rest, cluster), checked))

    return guard
