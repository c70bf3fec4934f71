"""What holds for all groups of either protocol, under Kafka's names where Kafka has one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """What holds for all groups; the names in brackets are Kafka's."""

    initial_rebalance_delay_ms: int = 0
    """How long an empty group waits for more members after the first one.

    Kafka's group.initial.rebalance.delay.ms, which is 3000 there.
    """
    max_size: int = 2**31 - 1
    """Most members of a group (group.max.size)."""
    min_session_timeout_ms: int = 1
    """Shortest session timeout that a member may ask for (group.min.session.timeout.ms; Kafka: 6000)."""
    max_session_timeout_ms: int = 1_800_000
    """Longest session timeout that a member may ask for (group.max.session.timeout.ms)."""
    max_groups: int = 10_000
    """Most groups of either protocol, with members or without; Kafka has no such limit."""
    max_members: int = 10_000
    """Most members of all groups together; Kafka has no such limit."""
    max_member_bytes: int = 256 * 1024 * 1024
    """Most bytes of subscriptions and assignments of all members together; Kafka limits each group by its log."""
    max_offset_bytes: int = 256 * 1024 * 1024
    """Most bytes of committed offsets of all groups, each counted with its topic's name, its text and 100 bytes."""
    max_record_bytes: int = 1_048_588
    """Largest record of a classic group: all subscriptions and assignments together (message.max.bytes, which holds
    for ``__consumer_offsets`` too). Above it nobody's SyncGroup is answered with an assignment."""
    offsets_retention_minutes: int = 10_080
    """How long offsets are kept after their commit, or after the last consumer left (offsets.retention.minutes)."""
    offsets_retention_check_interval_ms: int = 600_000
    """How often offsets and groups that have lapsed are looked for (offsets.retention.check.interval.ms)."""
    new_member_join_timeout_ms: int = 300_000
    """How long a new member's join may wait before the member is given up."""
