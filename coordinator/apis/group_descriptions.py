"""Not an API: how DescribeGroups and its siblings answer for many groups.

Responses stay bounded if groups are named repeatedly. All but DescribeGroups share their rows' form and the checks of
rights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from loadwise.coordinator.access import Access, after, allowed, item_by_item, names
from loadwise.coordinator.calls import Call, Message, Outcome
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.rights import Operation, ResourceType
from loadwise.protocol.error_codes import ErrorCode

_Group = TypeVar("_Group")


def described(
    group_ids: Iterable[str],
    describe: Callable[[str], Message],
    refuse: Callable[[str], Message],
    *,
    max_members: int,
) -> list[Message]:
    """Return a row for each id, and describe each group once.

    Beyond ``max_members`` in all rows together, ids get an error, so that a small request cannot ask for gigabytes.
    That is enough for all members once.
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
    """Describe each group separately, with the client's rights if requested.

    ``find`` returns the group of an id if it has this ``kind`` (such as ``share``). ``describe`` builds its row of the
    class ``group_row``. Groups that are named again get an error once the rows exceed the maximum number of members.
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
                group.authorized_operations = access.operations(ResourceType.GROUP, group.group_id)
    return call.response(throttle_time_ms=0, groups=groups)


def refused(group_row: Any, group_id: str, error: ErrorCode, message: str | None) -> Message:
    """Return the row of a group with an error; ``group_row`` is its class."""
    return group_row(
        error_code=error,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )


def _not_found(call: Call, cluster: Cluster, group_row: Any, group_id: str, kind: str) -> Message:
    """Return the row of a missing group, or of one of another kind."""
    if not group_id:
        return refused(group_row, group_id, ErrorCode.INVALID_GROUP_ID, None)
    if not cluster.coordinates(call, group_id):
        return refused(group_row, group_id, ErrorCode.NOT_COORDINATOR, None)
    is_there = cluster.groups.get(group_id) is not None
    message = f"Group {group_id} is not a {kind} group." if is_there else f"Group {group_id} not found."
    return refused(group_row, group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)


def assigned_topics(assignments: Callable[[Message], Iterable[Message]]) -> Callable[[Message], Iterable[str]]:
    """Return a function for the topics in a group's row; ``assignments`` gets them from a member's row."""

    def topics(group: Message) -> Iterable[str]:
        rows = (assignment for member in group.members for assignment in assignments(member))
        return (each.topic_name for row in rows for each in row.topic_partitions)

    return topics


def guarding(
    group_row: Any,
    topics: Callable[[Message], Iterable[str]],
    message: str = "The group has described topic(s) that the client is not authorized to describe.",
) -> Callable[[Call, Cluster, Handler], Outcome]:
    """Return a guard that hides groups with topics that the client may not describe.

    ``topics`` returns the topics of a group's row, and ``message`` is the error's message.
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
