"""Streams groups for tests: an application's topology, a group with a clock, and members that do what they are told."""

from __future__ import annotations

from typing import Any

from consumer_groups import FakeTopics
from heartbeat_groups import HeartbeatDriver

from loadwise.coordinator.streams.group import StreamsGroup
from loadwise.coordinator.streams.heartbeat import StreamsHeartbeat, StreamsHeartbeatReply
from loadwise.coordinator.streams.limits import StreamsGroupLimits
from loadwise.coordinator.streams.topology import (
    NO_TASKS,
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Task,
    Tasks,
    Topology,
)
from loadwise.protocol.error_codes import ErrorCode

SESSION_MS, REBALANCE_MS = 1000, 300


def internal(name: str, partitions: int = 0) -> InternalTopic:
    """A changelog, or a topic to repartition through."""
    return InternalTopic(name=name, partitions=partitions, configs={})


def part(
    part_id: str,
    *sources: str,
    changelogs: tuple[str, ...] = (),
    sinks: tuple[str, ...] = (),
    repartitioned: tuple[InternalTopic, ...] = (),
    together: tuple[int, ...] = (),
    together_with: tuple[int, ...] = (),
) -> Subtopology:
    """A subtopology; ``together`` and ``together_with`` are indices of sources and of repartition topics."""
    group = CopartitionGroup(source_topics=together, repartition_source_topics=together_with)
    return Subtopology(
        id=part_id,
        source_topics=sources,
        repartition_sink_topics=sinks,
        repartition_source_topics=repartitioned,
        state_changelog_topics=tuple(map(internal, changelogs)),
        copartition_groups=(group,) if together or together_with else (),
    )


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    """A whole topology."""
    return Topology(epoch=epoch, subtopologies=parts)


COUNTING = topology(part("0", "t", changelogs=("c",)), part("1", "t"))
"""One subtopology with state and one without, which read the same topic."""


def tasks(part_id: str, *partitions: int) -> frozenset[Task]:
    """Tasks of one subtopology."""
    return frozenset(Task(part_id, number) for number in partitions)


class Client:
    """A member: what it has, and what it is to report."""

    def __init__(self, member_id: str, process_id: str, **said: Any) -> None:
        self.member_id = member_id
        self.said = {"process_id": process_id, "rebalance_timeout_ms": REBALANCE_MS, **said}
        self.epoch = 0
        self.owned: Tasks = NO_TASKS
        self.to_report: Tasks | None = None
        self.running: frozenset[Task] = frozenset()
        """Active tasks that it is at work on: it gives them up just before it reports that."""


class Driver(HeartbeatDriver[StreamsGroup]):
    """A streams group and its topics. Topics that the group lacks are made at once."""

    def __init__(self, topics: FakeTopics | None = None, **limits: Any) -> None:
        self.topics = topics or FakeTopics(t=4)
        self.limits = StreamsGroupLimits(**{"session_timeout_ms": SESSION_MS} | limits)
        super().__init__(StreamsGroup("g", self.topics, self.limits))

    def beat(self, member_id: str, epoch: int, **fields: Any) -> StreamsHeartbeatReply:
        """One heartbeat as it is written here."""
        event = StreamsHeartbeat(token=next(self.tokens), member_id=member_id, epoch=epoch, **fields)
        reply = self.handle(event)
        assert isinstance(reply, StreamsHeartbeatReply)
        for topic in reply.missing_topics:
            self.topics.set(topic.name, topic.partitions)
        return reply

    def join(self, client: Client, application: Topology = COUNTING) -> StreamsHeartbeatReply:
        """A member's first heartbeat, which it forgets all for that it had."""
        client.owned, client.running = NO_TASKS, frozenset()
        reply = self.beat(client.member_id, 0, topology=application, owned=NO_TASKS, **client.said)
        return self._taken_in(client, reply)

    def beat_as(self, client: Client, *, reports: bool = True) -> StreamsHeartbeatReply:
        """A later heartbeat; a member reports what it has only where that is new, and if it ``reports``."""
        owned = client.to_report if reports else None
        if owned is not None:
            client.to_report, client.running = None, owned.active
        return self._taken_in(client, self.beat(client.member_id, client.epoch, owned=owned))

    def _taken_in(self, client: Client, reply: StreamsHeartbeatReply) -> StreamsHeartbeatReply:
        if reply.error is ErrorCode.NONE:
            client.epoch = reply.epoch
            if reply.assigned is not None:
                client.owned = client.to_report = reply.assigned
                client.running |= reply.assigned.active
        return reply

    def settle(self, *clients: Client) -> None:
        """Let members beat until nothing changes."""
        while True:
            before = [(client.epoch, client.owned) for client in clients]
            for client in clients:
                assert self.beat_as(client).error is ErrorCode.NONE
            if before == [(client.epoch, client.owned) for client in clients]:
                return
