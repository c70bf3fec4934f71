"""The states of a classic group, their data, and the transitions between them.

Read the table first: a group changes its state for a `Cause`, and only along a row of `TRANSITIONS`. Mirrors Kafka's
``ClassicGroupState`` with its ``validPreviousStates``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from loadwise.coordinator.groups.events import Token


class GroupState(Enum):
    """The state of a classic group, by its name in DescribeGroups and ListGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class Cause(Enum):
    """Why a group changes its state."""

    MEMBERS_CHANGED = auto()
    """A member joined, left, expired or changed its subscription, so that all must rejoin."""
    ALL_JOINED = auto()
    """All members have joined, or the others were removed, so that the next generation starts."""
    ALL_GONE = auto()
    """All members have left."""
    ASSIGNED = auto()
    """The leader has sent the assignment."""
    REPLACED = auto()
    """A static member returned without changes (KIP-814)."""
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
"""State, cause and next state. Other transitions are not possible."""


@dataclass(slots=True)
class Empty:
    """No member is in the group."""

    since_ms: int | None = None
    """When the last member left; None for a group that never had one, or that was rebuilt."""
    name: GroupState = field(default=GroupState.EMPTY, init=False)


@dataclass(slots=True, kw_only=True)
class InitialDelay:
    """An empty group's first rebalance waits for more members (KIP-134)."""

    remaining_ms: int
    """How much longer it may be extended after the current delay."""
    joined_since: bool = False
    """Whether a member joined during the current delay, which extends it."""


@dataclass(slots=True, kw_only=True)
class Preparing:
    """The group waits for its members to join."""

    deadline_ms: int
    """When members that have not joined are removed, or the initial delay ends."""
    initial: InitialDelay | None = None
    """None except in the first rebalance of an empty group."""
    joins: dict[str, Token] = field(default_factory=dict)
    """Member id to its join, which waits for the next generation."""
    newcomers: set[str] = field(default_factory=set)
    """Members whose first join has no answer yet; until then they cannot send heartbeats."""
    name: GroupState = field(default=GroupState.PREPARING_REBALANCE, init=False)


@dataclass(slots=True, kw_only=True)
class Completing:
    """All have joined; the group waits for the leader's assignment."""

    pending: set[str]
    """Members that have not synced."""
    deadline_ms: int | None
    """When those are removed; None if there are none."""
    syncs: dict[str, Token] = field(default_factory=dict)
    """Member id to its sync, which waits for the leader's assignment."""
    name: GroupState = field(default=GroupState.COMPLETING_REBALANCE, init=False)


@dataclass(slots=True, kw_only=True)
class Stable:
    """The members have their assignments, or can fetch them."""

    pending: set[str] = field(default_factory=set)
    """Members that have not synced."""
    deadline_ms: int | None = None
    """When those are removed; None if there are none."""
    name: GroupState = field(default=GroupState.STABLE, init=False)


@dataclass(slots=True)
class Dead:
    """The group was deleted."""

    name: GroupState = field(default=GroupState.DEAD, init=False)


Phase: TypeAlias = Empty | Preparing | Completing | Stable | Dead
"""The state of a group, with the data of that state."""
