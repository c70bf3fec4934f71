"""Share sessions: a member's partitions on a broker, and its next epoch (KIP-932).

Mirrors Kafka's ``ShareSessionCache`` and ``SharePartitionManager.newContext``. Each request carries the session's
epoch. 0 starts a session, -1 ends it, and each request in between increments it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

from loadwise.protocol.error_codes import ErrorCode

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_INT32_MAX = 2**31 - 1
_MOST_PARTITIONS = 1_000_000
"""Maximum partitions in all sessions together, because clients may name missing ones."""

NO_TOPIC = UUID(int=0)
"""The id of no topic, which a client may name too."""
TopicIdPartition: TypeAlias = tuple[UUID, int]
"""A partition by its topic's id."""
Named: TypeAlias = Sequence[tuple[UUID, Sequence[int]]]
"""Partitions by their topics' ids."""


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
    topics: dict[UUID, dict[int, bool]] = field(default_factory=dict)
    """Fetched partitions of each topic; True if the next response about one must include it.

    By topic, because the garbage collector would walk as many keys as partitions.
    """
    held: set[TopicIdPartition] = field(default_factory=set)
    """Partitions of which the member has acquired records."""

    def __len__(self) -> int:
        return sum(map(len, self.topics.values()))

    def add(self, named: Named, *, is_told: bool) -> None:
        """Add partitions; ``is_told`` if the next response must include each new one."""
        for topic_id, numbers in named:
            fetched = self.topics.setdefault(topic_id, {})
            for number in numbers:
                fetched[number] = is_told

    def remove(self, topic_id: UUID, numbers: Iterable[int]) -> None:
        """Remove partitions of a topic."""
        fetched = self.topics.get(topic_id, {})
        for number in numbers:
            fetched.pop(number, None)

    def part(self, start: int, most: int) -> list[TopicIdPartition]:
        """Return ``most`` partitions, beginning with number ``start``; the first follow the last."""
        found: list[TopicIdPartition] = []
        for topic_id, numbers in chain(self.topics.items(), self.topics.items()):
            found += [(topic_id, number) for number in islice(numbers, start, start + most - len(found))]
            start = max(start - len(numbers), 0)
        return found

    def answered(self, where: TopicIdPartition, *, is_error: bool) -> bool:
        """Note a response about a partition; return whether it must include it. The next must after an error."""
        topic_id, number = where
        fetched = self.topics.get(topic_id, {})
        if number not in fetched:
            return False
        is_told, fetched[number] = fetched[number], is_error
        return is_told


class ShareSessions:
    """All share sessions of a cluster."""

    def __init__(self) -> None:
        self._sessions: dict[SessionKey, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, key: SessionKey) -> ShareSession | None:
        """Return a member's session; None if it has none."""
        return self._sessions.get(key)

    def begin(self, key: SessionKey, connection_id: int, named: Named, most: int) -> ErrorCode:
        """Start a session and replace any previous one. A broker has at most ``most`` sessions."""
        before = self._sessions.pop(key, None)
        if sum(each.node_id == key.node_id for each in self._sessions) >= most or not self._has_room(named):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(1, connection_id, held=set() if before is None else before.held)
        session.add(named, is_told=False)
        self._sessions[key] = session
        return ErrorCode.NONE

    def add(self, key: SessionKey, named: Named) -> ErrorCode:
        """Add partitions to a session; the next response includes each of them."""
        session = self._sessions[key]
        known = session.topics
        new = [
            (topic_id, [each for each in numbers if each not in known.get(topic_id, {})]) for topic_id, numbers in named
        ]
        if any(numbers for _, numbers in new) and not self._has_room(new):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session.add(new, is_told=True)
        return ErrorCode.NONE

    def _has_room(self, named: Named) -> bool:
        partitions = sum(len(numbers) for _, numbers in named)
        return partitions + sum(map(len, self._sessions.values())) <= _MOST_PARTITIONS

    def go_on(self, key: SessionKey, epoch: int) -> ErrorCode:
        """Check the epoch of a request and advance the session to the next one."""
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == _INT32_MAX else epoch + 1
        return ErrorCode.NONE

    def hold(self, key: SessionKey, where: TopicIdPartition) -> None:
        """Note that a member has acquired records of a partition."""
        self._sessions[key].held.add(where)

    def end(self, key: SessionKey) -> list[TopicIdPartition]:
        """End a session and return the partitions of which its member has acquired records."""
        session = self._sessions.pop(key, None)
        if session is None:
            return []
        return [where for where in session.held if where[1] in session.topics.get(where[0], {})]

    def of_connection(self, connection_id: int) -> list[SessionKey]:
        """Return the sessions that started on a connection."""
        return [key for key, session in self._sessions.items() if session.connection_id == connection_id]
