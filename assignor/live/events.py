"""The events of a group's watch, as frozen values: `GroupWatch.handle` takes them, `history` keeps and replays them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from loadwise.assignor.model import Assignment, Assignor, Floats
from loadwise.protocol.live_notes import Memory


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Said:
    """A member's report about itself, with a commit or when it joins."""

    per_s: float = 0.0
    """Records that it processes in a busy second; 0 if unknown."""
    each_s: Mapping[str, float] = field(default_factory=dict)
    """Topic to the seconds that one of its records takes."""
    learned_per_s: float = 0.0
    """Its capacity in records/s, learned by its last leader; 0 if unknown."""
    written_ms: int | None = None
    """When it wrote the note beside its commit, by its own clock; None if there is no new note."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class PriorEnds:
    """The ends of partitions some time before the first reading, or before the first in a long time."""

    at_ms: int
    ends: Mapping[tuple[str, int], int]


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Joined:
    """All members have joined; ``memory`` is that of a leader in between, None if there was no other leader."""

    at_ms: int
    said: Mapping[str, Said]
    memory: Memory | None
    off: bool = False
    """Whether a member has turned rebalances for the load off."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Assigned:
    """An assignment is in force after a rebalance of ``duration_ms``."""

    at_ms: int
    target: Assignment
    generation: int
    duration_ms: int
    cause: str = ""
    stated: Mapping[str, float] = field(default_factory=dict)
    """The capacities that users set, by member id; 0 if not set."""
    algorithm: Assignor | None = None
    """The algorithm that the group has elected; None: the one before."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Read:
    """The group's offsets were read: ``positions`` is float64[n, 4], the columns are the fields of a `Position`."""

    at_ms: int
    partitions: Collection[tuple[str, int]]
    positions: Floats
    said: Mapping[str, Said] = field(default_factory=dict)
    own: Mapping[str, Floats] | None = None
    """Topic to the load of each of its partitions by the user's own measure; None if there is no new one."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Asked:
    """The rebalance that was decided last was requested."""

    at_ms: int


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Rebalancing:
    """Another rebalance has begun, or another member leads."""

    at_ms: int


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Switched:
    """The group's switch was read: whether rebalances for the load are ``off``."""

    at_ms: int
    off: bool


Event = PriorEnds | Joined | Assigned | Read | Asked | Rebalancing | Switched
Events = Sequence[Event]
