"""A leader that reads offsets before it assigns; kafka-python and aiokafka connect it to their coordinators."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from loadwise.assignor.leader import Leader
from loadwise.assignor.load.lag import LagLoad

FIRST_READING_S = 2.0
"""How long a leader without a fresh reading waits for one before it assigns..."""
_OF_SESSION = 1 / 3
"""... but at most this part of the session timeout, because the group waits for it."""


_L = TypeVar("_L", bound=LagLoad)


class LeaderWatch(Generic[_L]):
    """Connects a client's coordinator and a `Leader`; ``ask`` requests a rebalance."""

    def __init__(
        self, leader: Leader, lag: _L, ask: Callable[[], bool], *, instance_id: str | None, session_s: float
    ) -> None:
        self._leader = leader
        self.lag = lag
        self.wait_s = min(FIRST_READING_S, session_s * _OF_SESSION)
        """How long to wait for the reading of `elected`."""
        self._instance_id = instance_id
        leader.ask = ask
        leader.name = instance_id or ""

    def note(self, member_id: str) -> str:
        """Return the metadata that this member writes with a commit."""
        name = self._instance_id or member_id
        return self._leader.note(name) if name else ""

    def elected(self, topics: Collection[str], member_id: str) -> bool:
        """Read the offsets of these topics before the member leads; return False if there is a fresh reading."""
        self._leader.name = self._instance_id or member_id
        if self._leader.has_fresh_reading and self.lag.topics.issuperset(topics):
            return False
        self.lag.include(topics)
        self.lag.refresh()
        return True
