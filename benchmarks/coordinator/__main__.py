"""``python -m benchmarks.coordinator``: requests a second of one coordinator with one large group, by protocol.

Requests go in as bytes and answers come out as bytes, without sockets, under a clock that the benchmark sets. Topics
are names and numbers only: a million empty logs would measure memory, not the coordinator.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)

from benchmarks.coordinator.driver import ConsumerGroupHeartbeatRequest
from loadwise.coordinator.calls import Call
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.router import Router
from loadwise.coordinator.services import services
from loadwise.coordinator.settings import BrokerSettings
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.messages import decode_request, encode_response, served
from loadwise.protocol.structs import Struct

TOPICS = 100
GROUP = "g"
HOST = "/127.0.0.1"


@dataclass(frozen=True)
class Topic:
    """A topic without logs."""

    name: str
    id: UUID
    partitions: Sequence[object]


class Topics:
    """The topics of the benchmark, all with as many partitions."""

    def __init__(self, partitions: int) -> None:
        self.version = 0
        each = range(partitions // TOPICS)
        topics = [Topic(f"topic-{number:03}", UUID(int=number + 1), each) for number in range(TOPICS)]
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.id: topic for topic in topics}

    def get(self, name: str) -> Topic | None:
        """The topic of this name."""
        return self._by_name.get(name)

    def get_by_id(self, topic_id: UUID | None) -> Topic | None:
        """The topic of this id."""
        return None if topic_id is None else self._by_id.get(topic_id)

    def racks(self, name: str) -> Sequence[Sequence[str]] | None:
        """Nothing is in a rack."""
        return None

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())


class Wire:
    """A broker that is driven by bytes."""

    def __init__(self, partitions: int) -> None:
        limits = ConsumerGroupLimits(assignment_interval_ms=1000)
        self.router = Router(BrokerSettings(consumer_groups=limits))
        self.cluster = self.router.cluster
        self.topics = Topics(partitions)
        # Apache Kafka's default ceiling of a classic group's record would end at about 100,000 partitions.
        unlimited = GroupLimits(max_record_bytes=2**31 - 1)
        self.cluster.groups = Groups(unlimited, limits, self.topics)
        self.now_ms = 1_000_000
        self._apis = served(service.api for service in services().values())
        self._tokens = 0

    def send(self, frame: bytes) -> dict[int, Any]:
        """One request; the answers that it lets go, by token."""
        self._tokens += 1
        request = decode_request(frame, self._apis, most=1_000_000)
        answers = self.router.receive(Call(self._tokens, request, HOST), self.now_ms)
        for answer in answers:
            assert isinstance(answer.response, Struct)
            encode_response(answer.response, answer.call.version, 1)
        return {answer.call.token: answer.response for answer in answers}

    @property
    def token(self) -> int:
        """The token of the last request."""
        return self._tokens


def framed(request: Any) -> bytes:
    """A request as its client writes it."""
    request.with_header(1, "client")
    return bytes(request.encode(header=True))


def timed(what: str, count: int, work: Callable[[], object]) -> None:
    """Do so many requests, and tell how fast that was."""
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"  {what:<58} {count:>7,} requests {seconds:>9.3f} s {count / seconds:>10,.0f} /s", flush=True)


def consumer_group(partitions: int, members: int, beats: int) -> None:
    """KIP-848: everybody joins, gets its partitions, and sends heartbeats; then one more comes."""
    wire = Wire(partitions)
    names = [topic.name for topic in wire.topics]
    epochs: dict[str, int] = {}
    owned: dict[str, list[Any] | None] = {}

    def beat(member_id: str, epoch: int, **fields: Any) -> None:
        unchanged: dict[str, Any] = {
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": owned.pop(member_id, None),
        }
        request = ConsumerGroupHeartbeatRequest(
            version=1, group_id=GROUP, member_id=member_id, member_epoch=epoch, **unchanged | fields
        )
        reply = wire.send(framed(request))[wire.token]
        assert reply.error_code == 0, reply
        epochs[member_id] = reply.member_epoch
        if reply.assignment is not None:
            row = ConsumerGroupHeartbeatRequest.TopicPartitions
            owned[member_id] = [
                row(topic_id=each.topic_id, partitions=each.partitions) for each in reply.assignment.topic_partitions
            ]

    def join(member_id: str) -> None:
        joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": names, "topic_partitions": []}
        beat(member_id, 0, **joining)

    def all_join(member_ids: Sequence[str]) -> None:
        for member_id in member_ids:
            join(member_id)

    def all_beat() -> None:
        for member_id in list(epochs):
            beat(member_id, epochs[member_id])

    ids = [f"member-{number:05}" for number in range(members)]
    timed("join (the first one gets everything)", members, lambda: all_join(ids))
    wire.now_ms += 1000
    timed("new targets for all, then steps towards them", members, all_beat)
    for _ in range(3):
        all_beat()
    group = wire.cluster.groups.get(GROUP)
    assert group is not None
    assert group.state.value == "Stable", group.state
    frames = [
        framed(
            ConsumerGroupHeartbeatRequest(
                version=1, group_id=GROUP, member_id=each, member_epoch=epochs[each], rebalance_timeout_ms=-1,
                instance_id=None, rack_id=None, subscribed_topic_names=None, subscribed_topic_regex=None,
                server_assignor=None, topic_partitions=None,
            )
        )
        for each in ids
    ]  # fmt: skip
    timed("heartbeats of a stable group", members * beats, lambda: [wire.send(each) for each in frames * beats])
    wire.now_ms += 1000
    timed("one more member joins (new targets)", 1, lambda: all_join(["member-late"]))
    timed("steps of all towards them", members, all_beat)


def classic_group(members: int, beats: int) -> None:
    """The classic protocol: everybody joins and syncs, and sends heartbeats."""
    wire = Wire(TOPICS)
    metadata = Subscription(topics=["topic-000"]).encode()
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    ids: list[str] = []
    waiting: dict[int, str] = {}

    def join(member_id: str) -> None:
        request = JoinGroupRequest(
            version=9, group_id=GROUP, session_timeout_ms=600_000, rebalance_timeout_ms=600_000, member_id=member_id,
            group_instance_id=None, protocol_type="consumer", protocols=[protocol], reason=None,
        )  # fmt: skip
        answers = wire.send(framed(request))
        waiting[wire.token] = member_id
        for token, answer in answers.items():
            known = waiting.pop(token)
            if not known:
                ids.append(answer.member_id)

    def all_join() -> None:
        for _ in range(members):
            join("")
        for member_id in ids:
            join(member_id)
        for member_id in ids[:1]:  # the first one was through before the others came
            join(member_id)

    timed("join, with an id first", 2 * members + 1, all_join)
    group = wire.cluster.groups.get(GROUP)
    assert group is not None

    def all_sync() -> None:
        for member_id in ids:
            request = SyncGroupRequest(
                version=5, group_id=GROUP, generation_id=group.generation, member_id=member_id, group_instance_id=None,
                protocol_type="consumer", protocol_name="range", assignments=[],
            )  # fmt: skip
            wire.send(framed(request))

    timed("sync", members, all_sync)
    assert group.state.value == "Stable", group.state
    frames = [
        framed(
            HeartbeatRequest(
                version=4, group_id=GROUP, generation_id=group.generation, member_id=each, group_instance_id=None
            )
        )
        for each in ids
    ]
    timed("heartbeats of a stable group", members * beats, lambda: [wire.send(each) for each in frames * beats])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a line for each phase."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--partitions", type=int, default=1_000_000, help=f"a multiple of {TOPICS}")
    options.add_argument("--members", type=int, default=2000)
    options.add_argument("--beats", type=int, default=10, help="heartbeats of each member in the steady state")
    chosen = options.parse_args(arguments)
    print(f"consumer protocol (KIP-848), {chosen.partitions:,} partitions, {chosen.members:,} members")
    consumer_group(chosen.partitions, chosen.members, chosen.beats)
    print(f"classic protocol, {chosen.members:,} members")
    classic_group(chosen.members, chosen.beats)


if __name__ == "__main__":
    main()
