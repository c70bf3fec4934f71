"""The same requests to Apache Kafka and to ours get the same answers: who joins, who is fenced, which error code."""

from __future__ import annotations

import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka.protocol import admin, consumer, metadata, producer
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka


class Session:
    """One connection, and shorthands for what is asked over it; answers are reduced to what can be compared."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.group = f"group-{uuid.uuid4()}"
        self.topic = f"topic-{uuid.uuid4()}"
        self.ids: list[str] = []

    def ask(self, request: Any, response: Any) -> Any:
        request.with_header(7, "client")
        self.socket.sendall(bytes(request.encode(header=True, framed=True)))
        (size,) = struct.unpack(">i", self._read(4))
        return response.decode(self._read(size), version=request.API_VERSION, header=True)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += (more := self.socket.recv(size - len(data)))
            assert more, "the broker hung up"
        return data

    def member(self, member_id: str | int) -> str:
        """A member by its number in the order of joining, or an id that is none."""
        return self.ids[member_id] if isinstance(member_id, int) else member_id

    def join(self, member_id: str | int = "", instance: str | None = None, **changes: Any) -> tuple[Any, ...]:
        row = consumer.JoinGroupRequest.JoinGroupRequestProtocol
        fields: dict[str, Any] = {
            "version": 9,
            "group_id": self.group,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [row(name="range", metadata=b"m")],
            "reason": None,
        }
        request = consumer.JoinGroupRequest(
            **fields | changes, member_id=self.member(member_id), group_instance_id=instance
        )
        reply = self.ask(request, consumer.JoinGroupResponse)
        if reply.member_id and reply.member_id not in self.ids:
            self.ids.append(reply.member_id)
        who = self.ids.index(reply.member_id) if reply.member_id in self.ids else reply.member_id
        leader = self.ids.index(reply.leader) if reply.leader in self.ids else reply.leader
        protocol = (reply.protocol_type, reply.protocol_name)
        return reply.error_code, reply.generation_id, protocol, leader, who, reply.skip_assignment, len(reply.members)

    def sync(self, member_id: str | int, generation: int = 1, instance: str | None = None, **changes: Any) -> Any:
        row = consumer.SyncGroupRequest.SyncGroupRequestAssignment
        fields: dict[str, Any] = {
            "version": 5,
            "group_id": self.group,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [row(member_id=each, assignment=b"for %d" % n) for n, each in enumerate(self.ids)],
        }
        request = consumer.SyncGroupRequest(
            **fields | changes,
            generation_id=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
        )
        reply = self.ask(request, consumer.SyncGroupResponse)
        return reply.error_code, reply.protocol_type, reply.protocol_name, reply.assignment

    def beat(self, member_id: str | int, generation: int = 1, instance: str | None = None) -> int:
        request = consumer.HeartbeatRequest(
            version=4,
            group_id=self.group,
            generation_id=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
        )
        return int(self.ask(request, consumer.HeartbeatResponse).error_code)

    def leave(self, *leavers: tuple[str | int, str | None]) -> Any:
        row = consumer.LeaveGroupRequest.MemberIdentity
        members = [
            row(member_id=self.member(each), group_instance_id=instance, reason=None) for each, instance in leavers
        ]
        request = consumer.LeaveGroupRequest(version=5, group_id=self.group, members=members)
        reply = self.ask(request, consumer.LeaveGroupResponse)
        return reply.error_code, [member.error_code for member in reply.members]

    def commit(self, member_id: str | int, generation: int, instance: str | None = None, version: int = 9) -> int:
        topic = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, committed_leader_epoch=-1, committed_metadata=None
        )
        request = consumer.OffsetCommitRequest(
            version=version,
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
            topics=[topic(name=self.topic, partitions=[partition])],
        )
        return int(self.ask(request, consumer.OffsetCommitResponse).topics[0].partitions[0].error_code)

    def describe(self) -> Any:
        (group,) = self.ask(
            admin.DescribeGroupsRequest(version=6, groups=[self.group]), admin.DescribeGroupsResponse
        ).groups
        members = [(member.client_id, member.member_metadata, member.member_assignment) for member in group.members]
        return group.error_code, group.group_state, group.protocol_type, group.protocol_data, members

    def delete(self) -> int:
        request = admin.DeleteGroupsRequest(version=2, groups_names=[self.group])
        return int(self.ask(request, admin.DeleteGroupsResponse).results[0].error_code)

    def create_topic(self, name: str | None = None, partitions: int = 1, replicas: int = 1) -> int:
        row = admin.CreateTopicsRequest.CreatableTopic(
            name=self.topic if name is None else name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=[],
            configs=[],
        )
        request = admin.CreateTopicsRequest(version=7, topics=[row], timeout_ms=60_000)
        return int(self.ask(request, admin.CreateTopicsResponse).topics[0].error_code)

    def wait_for_topic(self) -> None:
        topic = metadata.MetadataRequest.MetadataRequestTopic(name=self.topic, topic_id=None)
        request = metadata.MetadataRequest(version=12, topics=[topic], allow_auto_topic_creation=False)
        deadline = time.monotonic() + WAIT_S
        while self.ask(request, metadata.MetadataResponse).topics[0].error_code:
            assert time.monotonic() < deadline

    def produce(self, records: bytes, acks: int = -1) -> tuple[int, int]:
        topic = producer.ProduceRequest.TopicProduceData
        data = topic(name=self.topic, partition_data=[topic.PartitionProduceData(index=0, records=records)])
        request = producer.ProduceRequest(
            version=9, transactional_id=None, acks=acks, timeout_ms=60_000, topic_data=[data]
        )
        reply = self.ask(request, producer.ProduceResponse).responses[0].partition_responses[0]
        return reply.error_code, reply.base_offset


def joining(broker: Session) -> Iterator[Any]:
    yield broker.join("nobody")
    yield broker.join(session_timeout_ms=2_000_000_000)
    yield broker.join(protocols=[])
    yield broker.join(protocol_type="")
    yield broker.join(group_id="")
    yield broker.join()
    yield broker.join(0)
    yield broker.join(0)
    yield broker.join("", protocols=[consumer.JoinGroupRequest.JoinGroupRequestProtocol(name="other", metadata=b"")])
    yield broker.describe()


def syncing_and_beating(broker: Session) -> Iterator[Any]:
    yield broker.sync("nobody")
    yield broker.beat("nobody")
    broker.join()
    yield broker.join(0)
    yield broker.beat(0)
    yield broker.sync(0, generation=7)
    yield broker.sync(0, protocol_type="connect")
    yield broker.sync(0, protocol_name="other")
    yield broker.sync(0, protocol_type=None)
    yield broker.sync(0, instance="i")
    yield broker.sync(0)
    yield broker.sync(0)
    yield [broker.beat(0), broker.beat(0, 0), broker.beat("nobody"), broker.beat(0, instance="i")]
    yield broker.describe()


def leaving_and_deleting(broker: Session) -> Iterator[Any]:
    yield broker.leave(("nobody", None))
    yield broker.delete()
    broker.join()
    broker.join(0)
    broker.sync(0)
    yield broker.delete()
    yield broker.leave(("nobody", None), ("", "no-instance"), ("", None))
    yield broker.leave((0, None))
    yield [broker.beat(0), broker.sync(0), broker.join(0)]
    yield broker.describe()
    yield [broker.delete(), broker.delete()]
    yield broker.describe()


def static_members(broker: Session) -> Iterator[Any]:
    yield broker.join(instance="i")
    yield broker.sync(0, instance="i")
    yield broker.join(instance="i")
    yield [broker.beat(0, instance="i"), broker.beat(0), broker.beat(1, instance="i"), broker.beat(1)]
    yield [broker.sync(0, instance="i"), broker.sync(1, instance="i")]
    yield broker.join(0, instance="i")
    yield broker.commit(0, 1, "i")
    yield broker.leave((0, "i"))
    yield broker.join(instance="i", version=7)
    yield broker.leave(("", "i"))
    yield broker.describe()


def committing(broker: Session) -> Iterator[Any]:
    yield [broker.commit("nobody", 1, version=9), broker.commit("nobody", 1, version=8)]
    yield broker.create_topic()
    broker.wait_for_topic()
    yield broker.commit("", -1)
    yield broker.describe()
    broker.join()
    broker.join(0)
    yield broker.commit(0, 1)
    broker.sync(0)
    yield [
        broker.commit(0, 1),
        broker.commit(0, 2),
        broker.commit(0, -1),
        broker.commit("", -1),
        broker.commit("nobody", 1),
    ]


def topics_and_batches(broker: Session) -> Iterator[Any]:
    yield [broker.create_topic(), broker.create_topic(), broker.create_topic(broker.topic.replace("-", ".") + "_x")]
    yield broker.create_topic(broker.topic.replace("-", ".") + ".x")
    yield [broker.create_topic(name) for name in ("", ".", "a/b", "x" * 250)]
    yield [broker.create_topic(f"{broker.topic}-{count}", count) for count in (0, -2)]
    yield broker.create_topic(f"{broker.topic}-r", replicas=3)
    broker.wait_for_topic()
    now = int(time.time() * 1000)
    good = batch([b"a", b"b"], timestamp=now)
    yield [broker.produce(data) for data in (good, good[:-1], good + good, good[:20], b"", good[:-1] + b"?")]
    yield [broker.produce(good, acks) for acks in (1, 5)]
    sequences = [(0, 0), (0, 1), (0, 1), (0, 0), (0, 5), (1, 5), (1, 0), (0, 2)]
    yield [broker.produce(batch([b"x"], timestamp=now, producer=(7_000_000, *each))) for each in sequences]


@pytest.mark.parametrize(
    "scenario",
    [joining, syncing_and_beating, leaving_and_deleting, static_members, committing, topics_and_batches],
    ids=lambda scenario: scenario.__name__,
)
def test_ours_answers_as_kafka_does(
    apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Callable[[Session], Iterator[Any]]
) -> None:
    theirs, ours = Session(apache_kafka), Session(coordinator.bootstrap_servers)
    for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
        assert got == expected, f"answer {step}"
    theirs.socket.close()
    ours.socket.close()
