"""No API of its own: how DescribeGroups and ConsumerGroupDescribe stay bounded where groups are named repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loadwise.coordinator.calls import Message


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
