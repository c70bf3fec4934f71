"""A consumer group to be driven without a network: topics that tests make, and members that answer as clients do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

from heartbeat_groups import HeartbeatDriver

from loadwise.assignor.live.reading import Position
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.effects import ConsumerHeartbeatReply
from loadwise.coordinator.groups.events import ConsumerHeartbeat, Tick


@dataclass
class FakeTopic:
    name: str
    id: UUID
    partitions: Sequence[object]


class FakeTopics:
    """Topics by name, made and grown by tests."""

    def __init__(self, **partitions: int) -> None:
        self.version = 0
        self._topics: dict[str, FakeTopic] = {}
        self._numbers = count(1)
        for name, number in partitions.items():
            self.set(name, number)

    def set(self, name: str, partitions: int) -> UUID:
        """Make a topic, or give it another number of partitions."""
        topic = self._topics.get(name) or FakeTopic(name, UUID(int=next(self._numbers)), ())
        topic.partitions = range(partitions)
        self._topics[name] = topic
        self.version += 1
        return topic.id

    def delete(self, name: str) -> None:
        del self._topics[name]
        self.version += 1

    def id_of(self, name: str) -> UUID:
        return self._topics[name].id

    def get(self, name: str) -> FakeTopic | None:
        return self._topics.get(name)

    def get_by_id(self, topic_id: UUID | None) -> FakeTopic | None:
        return next((topic for topic in self._topics.values() if topic.id == topic_id), None)

    def racks(self, name: str) -> list[list[str]] | None:
        """Each partition in one rack: r0, r1, r0, …"""
        topic = self._topics.get(name)
        return None if topic is None else [[f"r{number % 2}"] for number in range(len(topic.partitions))]

    def __iter__(self) -> Iterator[FakeTopic]:
        return iter(self._topics.values())


def by_name(topics: FakeTopics, partitions: Mapping[UUID, Any]) -> dict[str, list[int]]:
    """Partitions by topic name, sorted; a topic that is gone by its id."""
    named = {}
    for topic_id, numbers in partitions.items():
        topic = topics.get_by_id(topic_id)
        named[str(topic_id) if topic is None else topic.name] = sorted(numbers)
    return named


class Client:
    """A member's client: knows its epoch and what it was given, and gives up what it is not given any more."""

    def __init__(self, driver: Driver, member_id: str, **said: Any) -> None:
        self.driver = driver
        self.member_id = member_id
        self.said: dict[str, Any] = {"topics": ["t"], "rebalance_timeout_ms": 5000} | said
        self.epoch = 0
        self.owned: dict[UUID, list[int]] = {}
        self.to_report = False

    def beat(self, **changes: Any) -> ConsumerHeartbeatReply:
        """One heartbeat as a client sends it: everything when it joins, what it owns when that has changed."""
        fields: dict[str, Any] = {"instance_id": self.said.get("instance_id")}
        if self.epoch == 0:
            fields |= self.said | {"owned": {}}
        elif self.to_report:
            fields["owned"] = self.owned
        reply = self.driver.beat(self.member_id, self.epoch, **fields | changes)
        self.to_report = False
        if not reply.error:
            self.epoch = reply.epoch
            if reply.assigned is not None:
                self.owned = {topic: sorted(numbers) for topic, numbers in reply.assigned.items()}
                self.to_report = True
        return reply

    @property
    def partitions(self) -> dict[str, list[int]]:
        """What it was given, by topic name."""
        return by_name(self.driver.topics, self.owned)

    @property
    def count(self) -> int:
        return sum(map(len, self.owned.values()))


class FakeLoads:
    """Where partitions end, and what the group has committed, as tests set it; the others are not known."""

    def __init__(self) -> None:
        self.ends: dict[tuple[str, int], int] = {}
        self.committed: dict[tuple[str, int], int] = {}
        self.committed_ms: dict[tuple[str, int], int] = {}
        self.before: dict[tuple[str, int], int] = {}
        """Where partitions ended a minute ago."""

    def positions(self, _group_id: str, names: Iterable[str], now_ms: int, /) -> dict[tuple[str, int], Position]:
        there = set(names)
        return {
            at: Position(
                end,
                end - self.committed.get(at, 0),
                committed=at in self.committed,
                age_s=(now_ms - self.committed_ms.get(at, 0)) / 1000,
            )
            for at, end in self.ends.items()
            if at[0] in there
        }

    def ends_before(self, names: Iterable[str], _at_ms: int, /) -> dict[tuple[str, int], int]:
        there = set(names)
        return {at: end for at, end in self.before.items() if at[0] in there}


class Driver(HeartbeatDriver[ConsumerGroup]):
    """A consumer group, its topics, and their loads."""

    def __init__(self, topics: FakeTopics | None = None, **limits: Any) -> None:
        self.topics = topics or FakeTopics(t=6)
        self.loads = FakeLoads()
        super().__init__(ConsumerGroup("g", self.topics, ConsumerGroupLimits(**limits), loads=self.loads))
        self.now_ms = 1000

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ConsumerHeartbeatReply:
        reply = self.handle(ConsumerHeartbeat(token=next(self.tokens), member_id=member_id, epoch=epoch, **fields))
        assert isinstance(reply, ConsumerHeartbeatReply)
        return reply

    def client(self, member_id: str, **said: Any) -> Client:
        return Client(self, member_id, **said)

    def settle(self, *clients: Client) -> None:
        """Let all send heartbeats until nothing changes any more."""
        for _ in range(20):
            before = [(client.epoch, client.owned) for client in clients]
            for client in clients:
                assert not client.beat().error
            if before == [(client.epoch, client.owned) for client in clients]:
                return
        raise AssertionError("the group does not settle")

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.handle(Tick())
