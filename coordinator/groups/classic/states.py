"""The states of a classic group, what is known only while it is in them, and how it gets from one to another.

The table is the first thing to read (h11 has its like): a group moves by a `Cause`, and only along a row of
`TRANSITIONS`. Mirrors Kafka's ``ClassicGroupState`` with its ``validPreviousStates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from loadwise.coordinator.groups.events import Token


class GroupState(Enum):
    """The state of a classic group, by the names that DescribeGroups and ListGroups give."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Cause(Enum):
    """Why a group goes from one state to another."""

    MEMBERS_CHANGED = auto()
    """A member came, left, fell silent, or came with another subscription: all have to join again."""
    ALL_JOINED = auto()
    """All members have joined, or those that have not are out: the next generation begins."""
    ALL_GONE = auto()
    """No member is left."""
    ASSIGNED = auto()
    """The leader has brought the assignment."""
    REPLACED = auto()
    """A static member took its old place again and changed nothing (KIP-814)."""
    DELETED = auto()
    """An administrator deleted the group."""


TRANSITIONS: Mapping[GroupState, Mapping[Cause, GroupState]] = {
    GroupState.EMPTY: {
        Cause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
        Cause.DELETED: GroupState.DEAD,
    },
    GroupState.PREPARING_REBALANCE: {
        Cause.ALL_JOINED: GroupState.COMPLETING_REBALANCE,
        Cause.ALL_GONE: GroupState.EMPTY,
    },
    GroupState.COMPLETING_REBALANCE: {
        Cause.ASSIGNED: GroupState.STABLE,
        Cause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
    },
    GroupState.STABLE: {
        Cause.REPLACED: GroupState.STABLE,
        Cause.MEMBERS_CHANGED: GroupState.PREPARING_REBALANCE,
    },
    GroupState.DEAD: {},
}
"""State, cause and next state. What is not in it cannot happen."""


@dataclass(slots=True)
class Empty:
    """No member is in the group."""

    since_ms: int | None = None
    """When the last member went; None for a group that never had one, or that was rebuilt."""
    name: GroupState = field(default=GroupState.EMPTY, init=False)


@dataclass(slots=True, kw_only=True)
class InitialDelay:
    """An empty group's first rebalance waits for more members (KIP-134)."""

    remaining_ms: int
    """How much longer it may be put off after the present delay."""
    joined_since: bool = False
    """Whether somebody came in the present delay, which is a reason to put it off again."""


@dataclass(slots=True, kw_only=True)
class Preparing:
    """The group waits for its members to join."""

    deadline_ms: int
    """When those that have not joined are out, or the initial delay is over."""
    initial: InitialDelay | None = None
    """None but for the first rebalance of an empty group."""
    joins: dict[str, Token] = field(default_factory=dict)
    """Member id to the join that waits for the next generation."""
    newcomers: set[str] = field(default_factory=set)
    """Members whose first join has no answer yet: they cannot send heartbeats before that."""
    name: GroupState = field(default=GroupState.PREPARING_REBALANCE, init=False)


@dataclass(slots=True, kw_only=True)
class Completing:
    """All have joined; the group waits for the leader's assignment."""

    pending: set[str]
    """Members that have not synced."""
    deadline_ms: int | None
    """When those are out; None when there are none."""
    syncs: dict[str, Token] = field(default_factory=dict)
    """Member id to the sync that waits for the leader's assignment."""
    name: GroupState = field(default=GroupState.COMPLETING_REBALANCE, init=False)


@dataclass(slots=True, kw_only=True)
class Stable:
    """The members have their assignments, or can fetch them."""

    pending: set[str] = field(default_factory=set)
    """Members that have not synced."""
    deadline_ms: int | None = None
    """When those are out; None when there are none."""
    name: GroupState = field(default=GroupState.STABLE, init=False)


@dataclass(slots=True)
class Dead:
    """The group was deleted."""

    name: GroupState = field(default=GroupState.DEAD, init=False)


Phase: TypeAlias = Empty | Preparing | Completing | Stable | Dead
"""The state of a group together with what is known only in it."""
