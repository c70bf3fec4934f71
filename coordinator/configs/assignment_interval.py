"""How long a group waits between assignments, so that members who join together share one."""

from __future__ import annotations

_SMALL_GROUP = 100
_KAFKAS_ASSIGNMENT_INTERVAL_MS = 1000
_MEMBERS_A_MS = 4
_PARTITIONS_A_MS = 100


def assignment_interval_ms(configured_ms: int, members: int, partitions: int) -> int:
    """Return the minimum time between two assignments of a group, in ms.

    It is ``configured_ms`` unless that is 0. With 0, a group of up to 100 members does not wait. The cost of an
    assignment grows with members and partitions (or tasks), so a larger group waits one millisecond for every four
    members and every hundred partitions, up to Kafka's 1000 ms.
    """
    if configured_ms or members <= _SMALL_GROUP:
        return configured_ms
    return min(members // _MEMBERS_A_MS + partitions // _PARTITIONS_A_MS, _KAFKAS_ASSIGNMENT_INTERVAL_MS)
