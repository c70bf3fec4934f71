"""Share sessions: a member's partitions on a broker, and its next epoch (KIP-932).

Mirrors Kafka's ``ShareSessionCache`` and ``SharePartitionManager.newContext``. Each request carries the session's
epoch. 0 starts a session, -1 ends it, and each request in between increments it.
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
"""Maximum partitions in all sessions together, because clients may name missing ones."""

TopicPartition: TypeAlias = tuple[UUID, int]
"""A partition by its topic's id."""


class SessionKey(NamedTuple):
    """The group, member and broker of a session."""

    node_id: int
    group_id: str
    member_id: str


@dataclass(slots=True)
class ShareSession:
    """The session of one member with one broker."""

    epoch: int
    """The epoch that the next request must have."""
    connection_id: int
    """The connection on which it started; it ends with the connection."""
    partitions: dict[TopicPartition, bool] = field(default_factory=dict)
    """Fetched partitions in the order of the requests; True if the member has had no response about it yet."""


class ShareSessions:
    """All share sessions of a cluster."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """Return a member's session; None if it has none."""
        return self._sessions.get(key)

    def begin(self, key: SessionKey, connection_id: int, partitions: Iterable[TopicPartition], most: int) -> ErrorCode:
        """Start a session and replace any previous one. A broker has at most ``most`` sessions."""
        self._sessions.pop(key, None)
        fetched = dict.fromkeys(partitions, False)
        if sum(each.node_id == key.node_id for each in self._sessions) >= most or not self._has_room(len(fetched)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        self._sessions[key] = ShareSession(1, connection_id, fetched)
        return ErrorCode.NONE

    def add(self, key: SessionKey, partitions: Sequence[TopicPartition]) -> ErrorCode:
        """Add partitions to a session; the next response includes each of them."""
        fetched = self._sessions[key].partitions
        new = {each: True for each in partitions if each not in fetched}
        if new and not self._has_room(len(new)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        fetched |= new
        return ErrorCode.NONE

    def _has_room(self, partitions: int) -> bool:
        return partitions + sum(len(each.partitions) for each in self._sessions.values()) <= _MOST_PARTITIONS

    def go_on(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Check the epoch of a request and advance the session to the next one."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == _INT32_MAX else epoch + 1
        return ErrorCode.NONE

    def end(self, key: SessionKey) -> list[TopicPartition]:
        """End a session and return its partitions."""
        session = self._sessions.pop(key, None)
        return [] if session is None else list(session.partitions)

    def of_connection(self, connection_id: int) -> list[SessionKey]:
        """Return the sessions that started on a connection."""
        return [key for key, session in self._sessions.items() if session.connection_id == connection_id]
