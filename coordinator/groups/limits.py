"""Limits of all groups, under Kafka's names where Kafka has one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """Limits of all groups; Kafka's names are in brackets."""

    initial_rebalance_delay_ms: int = 0
    """How long an empty group waits for more members after the first one.

    Kafka's group.initial.rebalance.delay.ms, which is 3000 there.
    """
    initial_delay_ends_by_timer: bool = False
    """Whether requests that have arrived join an empty group's first rebalance even if its delay is 0, as in Kafka.

    Kafka's timer event waits behind them. Without a server there is no timer, and the first member begins alone.
    """
    max_size: int = 2**31 - 1
    """Maximum members of a group (group.max.size)."""
    min_session_timeout_ms: int = 1
    """Minimum session timeout of members (group.min.session.timeout.ms; Kafka: 6000)."""
    max_session_timeout_ms: int = 1_800_000
    """Maximum session timeout of members (group.max.session.timeout.ms)."""
    max_groups: int = 10_000
    """Maximum number of groups, with or without members; Kafka has no such limit."""
    max_members: int = 10_000
    """Maximum members of all groups together; Kafka has no such limit."""
    max_member_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of all members' subscriptions and assignments; Kafka limits each group by its log."""
    max_offset_bytes: int = 256 * 1024 * 1024
    """Maximum bytes of committed offsets, each counted with its topic's name, its text and 100 bytes."""
    max_record_bytes: int = 1_048_588
    """Maximum size of a classic group's record, with all subscriptions and assignments.

    Kafka applies message.max.bytes to ``__consumer_offsets`` too. Above it SyncGroup fails.
    """
    offsets_retention_minutes: int = 10_080
    """How long offsets are kept after their commit, or after the last consumer left (offsets.retention.minutes)."""
    offsets_retention_check_interval_ms: int = 600_000
    """How often expired offsets and groups are deleted (offsets.retention.check.interval.ms)."""
    new_member_join_timeout_ms: int = 300_000
    """How long a new member's join may wait before the member is removed."""
