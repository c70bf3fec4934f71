"""One group of the second act: its member processes, and the lag of each member at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadwise.assignor.model import NO_GENERATION
from loadwise.demo.messages import Assigned, Generation, Processed, Ready, decode
from loadwise.demo.process import Child


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a group at one moment."""

    at_s: float
    """Seconds since the stream began."""
    worst_lag: int
    """Records that wait for the member that has most of them."""


@dataclass(slots=True, kw_only=True)
class LiveGroup:
    """The members' reports so far, and the course of the lag."""

    assignor: str
    members: Sequence[Child]
    partitions: int
    moments: list[Moment] = field(default_factory=list)
    first_generation: int = NO_GENERATION
    """The generation in which the stream began."""
    generation: int = NO_GENERATION
    ready: list[asyncio.Event] = field(init=False)
    _owner: list[int | None] = field(init=False)
    _positions: list[int] = field(init=False)
    _dead: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.ready = [asyncio.Event() for _ in self.members]
        self._owner = [None] * self.partitions
        self._positions = [0] * self.partitions

    @property
    def is_complete(self) -> bool:
        """Whether every partition has an owner."""
        return None not in self._owner

    @property
    def rebalances(self) -> int:
        """Rebalances since the stream began."""
        return self.generation - self.first_generation

    def sample(self, at_s: float, ends: Sequence[int]) -> None:
        """Note the lag of the worst member. A partition counts for its last owner until another one has it."""
        lag = [0] * len(self.members)
        for owner, position, end in zip(self._owner, self._positions, ends, strict=True):
            if owner is not None:
                lag[owner] += max(end - position, 0)
        self.moments.append(Moment(at_s, max(lag)))

    def kill(self, member: int) -> None:
        """Kill a member's process, so that it cannot leave its group."""
        self._dead.add(member)
        self.members[member].kill()

    async def listen(self, member: int) -> None:
        """Take in a member's report. Raises `ChildDiedError` when it dies without being killed."""
        async for line in self.members[member].lines():
            match decode(line):
                case Ready():
                    self.ready[member].set()
                case Assigned(partitions):
                    for partition in partitions:
                        self._owner[partition] = member
                case Generation(generation):
                    self.generation = max(self.generation, generation)
                case Processed(ranges):
                    for partition, _, stop in ranges:
                        self._positions[partition] = max(self._positions[partition], stop)
        if member not in self._dead:
            raise await self.members[member].died()
