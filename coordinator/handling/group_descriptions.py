"""How DescribeGroups and its siblings answer for many groups.

Responses stay bounded if groups are named repeatedly. All but DescribeGroups share their rows' form and the checks of
rights.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence, Set
from typing import Any, Protocol, TypeVar

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, describable_topics, names, per_item
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode

_Group = TypeVar("_Group")


class _Row(Protocol):
    error_code: int
    group_id: str
    authorized_operations: Set[int] | None

    @property
    def members(self) -> Sequence[Any]: ...


R = TypeVar("R", bound=_Row)
R_co = TypeVar("R_co", bound=_Row, covariant=True)


class _RowClass(Protocol[R_co]):
    def __call__(
        self,
        *,
        error_code: int,
        error_message: str | None,
        group_id: str,
        group_state: str,
        group_epoch: int,
        assignment_epoch: int,
        members: Sequence[Any],
    ) -> R_co: ...


class _Request(Protocol):
    @property
    def group_ids(self) -> Sequence[str]: ...

    @property
    def include_authorized_operations(self) -> bool: ...


def described(
    group_ids: Iterable[str],
    describe: Callable[[str], R | Turns[R]],
    refuse: Callable[[str], R],
    *,
    max_members: int,
    access: Access | None,
) -> Turns[list[R]]:
    """Return a row for each id, and describe each group once.

    Beyond ``max_members`` in all rows together, ids get an error, so that a small request cannot ask for gigabytes.
    That is enough for all members once. With ``access``, the rows of groups that were found have the client's rights.
    """
    known: dict[str, R] = {}
    rows = []
    members_left = max_members
    for group_id in group_ids:
        if group_id not in known:
            found = describe(group_id)
            row = known[group_id] = (yield from found) if isinstance(found, Generator) else found
            yield len(row.members)
            if access is not None and row.error_code is ErrorCode.NONE:
                row.authorized_operations = access.operations(ResourceType.GROUP, group_id)
        row = known[group_id]
        yield
        members_left -= len(row.members)
        rows.append(row if members_left >= 0 else refuse(group_id))
    return rows


def described_with_rights(
    call: Call[_Request],
    cluster: Cluster,
    group_row: _RowClass[R],
    *,
    kind: str,
    find: Callable[[str], _Group | None],
    describe: Callable[[Cluster, _Group], Turns[R]],
    topics: Callable[[R], Iterable[str]],
    hidden: str = "The group has described topic(s) that the client is not authorized to describe.",
) -> Turns[list[R]]:
    """Describe each group separately, with the client's rights if requested.

    ``find`` returns the group of an id if it has this ``kind`` (such as ``share``). ``describe`` builds its row of the
    class ``group_row``. If the client may not describe all ``topics`` of a row, it gets the error ``hidden`` instead.
    Groups that are named again get an error once the rows exceed the maximum number of members.
    """
    may_describe = describable_topics(call, cluster)

    def row(group_id: str) -> Turns[R]:
        group = find(group_id)
        if group is None or not cluster.coordinates(call, group_id):
            return _not_found(call, cluster, group_row, group_id, kind)
        found = yield from describe(cluster, group)
        for name in set(topics(found)):
            if may_describe is not None and not may_describe(name):
                return refused(group_row, group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden)
            yield
        return found

    return described(
        call.body.group_ids,
        row,
        lambda group_id: refused(
            group_row, group_id, ErrorCode.INVALID_REQUEST, f"Group {group_id} is named too often in one request."
        ),
        max_members=cluster.settings.groups.max_members,
        access=Access(call, cluster) if call.body.include_authorized_operations else None,
    )


def refused(group_row: _RowClass[R], group_id: str, error: ErrorCode, message: str | None) -> R:
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


def _not_found(call: Call, cluster: Cluster, group_row: _RowClass[R], group_id: str, kind: str) -> R:
    if not group_id:
        return refused(group_row, group_id, ErrorCode.INVALID_GROUP_ID, None)
    if not cluster.coordinates(call, group_id):
        return refused(group_row, group_id, ErrorCode.NOT_COORDINATOR, None)
    is_there = cluster.groups.get(group_id) is not None
    message = f"Group {group_id} is not a {kind} group." if is_there else f"Group {group_id} not found."
    return refused(group_row, group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)


DESCRIBES_GROUPS = per_item(names(Operation.DESCRIBE, ResourceType.GROUP))
"""Guards the APIs that describe groups."""
