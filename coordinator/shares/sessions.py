"""Share sessions: which partitions a member fetches from a broker, and which request comes next (KIP-932).

Mirrors Kafka's ``ShareSessionCache`` and ``SharePartitionManager.newContext``. Every request of a member carries the
session's epoch: 0 begins one, -1 ends it, and in between each is one higher than the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias
from uuid import UUID

from loadwise.protocol.error_codes import ErrorCode

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_INT32_MAX = 2**31 - 1
_MOST_PARTITIONS = 500_000
"""Most partitions in all sessions together: clients may name some that are not there."""

TopicPartition: TypeAlias = tuple[UUID, int]
"""A partition by its topic's id."""


class SessionKey(NamedTuple):
    """Whose session it is; a member has one with each broker."""

    node_id: int
    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    """The session of one member with one broker."""

    epoch: int
    """The epoch that the next request must have."""
    connection_id: int
    """The connection that it began on: it ends with it."""
    partitions: dict[TopicPartition, bool] = field(default_factory=dict)
    """What is fetched, in the order in which it was asked for; True if the member has yet to hear of it."""


class ShareSessions:
    """All share sessions of a cluster."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """A member's session; None if it has none."""
        return self._sessions.get(key)

    def begin(self, key: SessionKey, connection_id: int, partitions: Iterable[TopicPartition], most: int) -> ErrorCode:
        """Begin a session, in place of one that there may be. A broker has at most so many."""
        self._sessions.pop(key, None)
        fetched = dict.fromkeys(partitions, False)
        if sum(each.node_id == key.node_id for each in self._sessions) >= most or not self._has_room(len(fetched)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        self._sessions[key] = ShareSession(1, connection_id, fetched)
        return ErrorCode.NONE

    def add(self, key: SessionKey, partitions: Sequence[TopicPartition]) -> ErrorCode:
        """Fetch from more partitions in a session, whose member has yet to hear of them."""
        fetched = self._sessions[key].partitions
        new = {each: True for each in partitions if each not in fetched}
        if new and not self._has_room(len(new)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        fetched |= new
        return ErrorCode.NONE

    def _has_room(self, partitions: int) -> bool:
        return partitions + sum(len(each.partitions) for each in self._sessions.values()) <= _MOST_PARTITIONS

    def go_on(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Check the epoch of a request within a session; the next one is to have the next epoch."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == _INT32_MAX else epoch + 1
        return ErrorCode.NONE

    def end(self, key: SessionKey) -> list[TopicPartition]:
        """Forget a session; what was fetched in it."""
        session = self._sessions.pop(key, None)
        return [] if session is None else list(session.partitions)

    def of_connection(self, connection_id: int) -> list[SessionKey]:
        """The sessions that began on a connection."""
        return [key for key, session in self._sessions.items() if session.connection_id == connection_id]
