"""The same heartbeats of consumer groups (KIP-848) to Apache Kafka and to ours: error codes, epochs, assignments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol import admin, consumer, metadata
from sessions import Session
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator
from loadwise.protocol import consumer_group
from loadwise.protocol.consumer import Assignment, Subscription

pytestmark = pytest.mark.kafka

REBALANCE_IN_PROGRESS = 27

Heartbeat = consumer_group.ConsumerGroupHeartbeatRequest


class ConsumerSession(Session):
    """A session that also speaks for members of consumer groups, which have the ids that they choose."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.topics: dict[UUID, str] = {}
        self.given: dict[str, dict[UUID, list[int]]] = {}
        self.first = 1
        """The epoch that a new group has before anybody wants anything; scenarios count from there."""

    def make(self, name: str, partitions: int) -> None:
        """Make a topic, by a short name, and wait until it is there."""
        assert self.create_topic(self.full(name), partitions) == 0
        self.await_topic(name, partitions)

    def grow(self, name: str, partitions: int) -> None:
        row = admin.CreatePartitionsRequest.CreatePartitionsTopic(
            name=self.full(name), count=partitions, assignments=None
        )
        request = admin.CreatePartitionsRequest(version=3, topics=[row], timeout_ms=10_000, validate_only=False)
        assert self.ask(request, admin.CreatePartitionsResponse).results[0].error_code == 0
        self.await_topic(name, partitions)

    def await_topic(self, name: str, partitions: int) -> None:
        row = metadata.MetadataRequest.MetadataRequestTopic(name=self.full(name), topic_id=None)
        request = metadata.MetadataRequest(version=12, topics=[row], allow_auto_topic_creation=False)
        deadline = time.monotonic() + WAIT_S
        while True:
            (topic,) = self.ask(request, metadata.MetadataResponse).topics
            if not topic.error_code and len(topic.partitions) == partitions:
                self.topics[topic.topic_id] = name
                break
            assert time.monotonic() < deadline
        self._await_coordinator(name, partitions)

    def _await_coordinator(self, name: str, partitions: int) -> None:
        """Kafka's coordinator hears of a topic by itself, maybe later: until then groups get nothing of it."""
        (mine, first), self.group, self.first = (self.group, self.first), f"{self.group}-{name}-{partitions}", 0
        deadline = time.monotonic() + WAIT_S
        answer = self.join_as("probe", name)
        while answer[2] is None or len(answer[2].get(name, ())) < partitions:
            assert time.monotonic() < deadline, answer
            joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [self.full(name)], "owned": True}
            answer = self.beat_as("probe", answer[1], **joining)
        self.beat_as("probe", -1)
        self.group, self.first = mine, first

    def full(self, name: str) -> str:
        return f"{self.topic}.{name}"

    def named(self, partitions: Mapping[UUID, list[int]]) -> dict[str, list[int]]:
        return {self.topics[topic_id]: sorted(numbers) for topic_id, numbers in sorted(partitions.items())}

    def beat_as(
        self, member: str, epoch: int, owned: bool | list[tuple[str, list[int]]] | None = None, **changes: Any
    ) -> Any:
        """A heartbeat; ``owned`` True: what the member was given last. Answers with error, epoch and assignment."""
        rows = None
        row = Heartbeat.TopicPartitions
        if owned is True:
            rows = [row(topic_id=each, partitions=numbers) for each, numbers in self.given.get(member, {}).items()]
        elif owned is not None and owned is not False:
            ids = {name: topic_id for topic_id, name in self.topics.items()}
            rows = [row(topic_id=ids[name], partitions=numbers) for name, numbers in owned]
        fields: dict[str, Any] = {
            "version": 1,
            "group_id": self.group,
            "member_id": member,
            "member_epoch": epoch + self.first if epoch > 0 else epoch,
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "subscribed_topic_names": None,
            "subscribed_topic_regex": None,
            "server_assignor": None,
            "topic_partitions": rows,
        }
        reply = self.ask(Heartbeat(**fields | changes), consumer_group.ConsumerGroupHeartbeatResponse)
        assigned = None
        if reply.assignment is not None:
            self.given[member] = {each.topic_id: each.partitions for each in reply.assignment.topic_partitions}
            assigned = self.named(self.given[member])
        has_id = reply.member_id == member
        return reply.error_code, reply.member_epoch, assigned, has_id, reply.heartbeat_interval_ms

    def join_as(self, member: str, *names: str, **changes: Any) -> Any:
        """A first heartbeat; the assignor is range, which leaves no choice."""
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": [self.full(name) for name in names],
            "topic_partitions": [],
            "server_assignor": "range",
        }
        return self.beat_as(member, 0, **fields | changes)

    def beat(self, member_id: str | int, generation: int = 1, instance: str | None = None) -> int:
        """A classic member's heartbeat, whose generation is its member epoch."""
        return super().beat(member_id, generation + self.first, instance)

    def describe_as_consumer_group(self) -> Any:
        request = consumer_group.ConsumerGroupDescribeRequest(version=1, group_ids=[self.group])
        (group,) = self.ask(request, consumer_group.ConsumerGroupDescribeResponse).groups
        members = [
            (
                member.member_id if member.member_id not in self.ids else self.ids.index(member.member_id),
                member.member_epoch,
                member.instance_id,
                member.rack_id,
                sorted(name.removeprefix(self.topic) for name in member.subscribed_topic_names),
                member.subscribed_topic_regex.replace(self.topic, "") if member.subscribed_topic_regex else None,
                self._named(member.assignment),
                self._named(member.target_assignment),
                member.member_type,
            )
            for member in group.members
        ]
        head = (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name)
        return head, sorted(members, key=str)

    def _named(self, assignment: Any) -> dict[str, list[int]]:
        return {self.topics[each.topic_id]: sorted(each.partitions) for each in assignment.topic_partitions}

    def listed(self, *types: str) -> Any:
        request = admin.ListGroupsRequest(version=5, states_filter=[], types_filter=list(types))
        groups = self.ask(request, admin.ListGroupsResponse).groups
        mine = [group for group in groups if group.group_id == self.group]
        return [(group.protocol_type, group.group_state, group.group_type) for group in mine]

    def commit_as(self, member: str, epoch: int, *partitions: int, name: str = "t", version: int = 9) -> list[int]:
        topic = consumer.OffsetCommitRequest.OffsetCommitRequestTopic
        row = topic.OffsetCommitRequestPartition
        rows = [
            row(partition_index=each, committed_offset=0, committed_leader_epoch=-1, committed_metadata=None)
            for each in partitions
        ]
        request = consumer.OffsetCommitRequest(
            version=version,
            group_id=self.group,
            generation_id_or_member_epoch=epoch + self.first if epoch >= 0 else epoch,
            member_id=member,
            group_instance_id=None,
            topics=[topic(name=self.full(name), partitions=rows)],
        )
        answer = self.ask(request, consumer.OffsetCommitResponse).topics[0].partitions
        return [each.error_code for each in sorted(answer, key=lambda each: each.partition_index)]

    def fetch_as(self, member: str | None, epoch: int) -> Any:
        group = consumer.OffsetFetchRequest.OffsetFetchRequestGroup
        sent = epoch + self.first if epoch >= 0 else epoch
        topic = group.OffsetFetchRequestTopics(name=self.full("t"), partition_indexes=[0])
        request = consumer.OffsetFetchRequest(
            version=9,
            groups=[group(group_id=self.group, member_id=member, member_epoch=sent, topics=[topic])],
            require_stable=False,
        )
        (answer,) = self.ask(request, consumer.OffsetFetchResponse).groups
        return answer.error_code, [
            each.committed_offset for each in answer.topics[0].partitions
        ] if answer.topics else []


def what_a_first_heartbeat_needs(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 3)
    yield broker.join_as("", "t")
    yield broker.join_as("a", "t", group_id="")
    yield broker.join_as("a", "t", group_id="  ")
    yield broker.join_as("a", "t", instance_id="")
    yield broker.join_as("a", "t", rack_id="")
    yield broker.join_as("a", "t", rebalance_timeout_ms=-1)
    yield broker.join_as("a", "t", topic_partitions=None)
    yield broker.join_as("a", subscribed_topic_names=None)
    yield broker.join_as("a", "t", server_assignor="best")
    yield broker.beat_as("a", 0)
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", -1)
    yield broker.beat_as("a", -2)
    yield broker.beat_as("a", -2, instance_id="i")
    yield broker.beat_as("a", -3)
    yield broker.describe_as_consumer_group()[0][:1]
    yield broker.join_as("a", "none")
    yield broker.join_as("b")
    yield broker.describe_as_consumer_group()


def members_come_and_go(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.join_as("a", "t")
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.join_as("b", "t")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("b", 2, owned=True)
    yield broker.beat_as("a", 1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("a", 1, owned=[("t", [0, 1, 2, 3])])
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("b", 2, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.listed()
    yield [broker.listed("consumer"), broker.listed("classic")]
    yield broker.describe()
    yield broker.beat_as("b", -1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2)
    yield broker.beat_as("b", 2)
    yield broker.delete()
    yield broker.beat_as("a", -1)
    yield broker.describe_as_consumer_group()
    yield broker.listed()
    yield broker.join_as("c", "t")
    yield broker.beat_as("c", -1)
    yield [broker.delete(), broker.delete()]
    yield broker.describe_as_consumer_group()


def a_revocation_that_takes_long(broker: ConsumerSession) -> Iterator[Any]:
    """The target moves on while a member still has to give up."""
    broker.make("t", 6)
    yield broker.join_as("a", "t")
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1, owned=True)
    yield broker.join_as("c", "t")
    yield broker.beat_as("a", 1)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("b", 2)
    yield broker.beat_as("c", 3)
    yield broker.beat_as("a", 3, owned=True)
    yield broker.beat_as("b", 2, owned=True)
    yield broker.beat_as("b", 3, owned=True)
    yield broker.beat_as("c", 3, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("b", -1)
    yield broker.beat_as("a", 3)
    yield broker.beat_as("c", 3)
    yield broker.beat_as("c", 3, owned=True)
    yield broker.beat_as("a", 4, owned=True)
    yield broker.describe_as_consumer_group()


def fencing(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    broker.join_as("a", "t")
    yield [broker.beat_as("a", epoch) for epoch in (2, 1)]
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", 1, owned=True)
    yield broker.beat_as("a", 1, owned=[("t", [0])])
    yield broker.beat_as("a", 1, owned=[("t", [0, 3])])
    yield broker.beat_as("a", 0)
    yield broker.join_as("a", "t")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("x", 2)


def static_members(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.join_as("o", "t")
    yield broker.beat_as("a", 1, instance_id="i")
    yield broker.beat_as("a", 1, owned=True, instance_id="i")
    yield broker.beat_as("o", 2)
    yield broker.beat_as("b", 2, instance_id="i")
    yield broker.beat_as("a", 2, instance_id="j")
    yield broker.beat_as("b", -2, instance_id="i")
    yield broker.beat_as("a", -2, instance_id="i")
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, instance_id="i")
    yield broker.commit_as("a", 2, 0)
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.commit_as("b", 2, 0)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, instance_id="i")
    yield broker.beat_as("a", 2)
    yield broker.beat_as("b", -2, instance_id="i")
    yield broker.join_as("b", "t", instance_id="i")
    yield broker.beat_as("b", -1, instance_id="i")
    yield broker.describe_as_consumer_group()


def subscriptions_that_change(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    broker.make("u", 2)
    yield broker.join_as("a", "t")
    yield broker.beat_as("a", 1, subscribed_topic_names=[broker.full("t"), broker.full("u")])
    yield broker.beat_as("a", 2, owned=True)
    yield broker.beat_as("a", 2, subscribed_topic_names=[broker.full("u")])
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 2, owned=True)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 3, subscribed_topic_names=[])
    yield broker.beat_as("a", 3, owned=[])
    yield broker.beat_as("a", 4, rack_id="r", rebalance_timeout_ms=1000)
    yield broker.describe_as_consumer_group()


def topics_that_grow(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    yield broker.join_as("a", "t", "later")
    broker.grow("t", 3)
    yield until_epoch(broker, "a", 1, 2)
    yield broker.describe_as_consumer_group()
    broker.make("later", 1)
    yield until_epoch(broker, "a", 2, 3)
    yield broker.describe_as_consumer_group()


def until_epoch(broker: ConsumerSession, member: str, epoch: int, wanted: int) -> Any:
    """Heartbeats until the coordinator has heard of a topic."""
    deadline = time.monotonic() + WAIT_S
    while True:
        answer = broker.beat_as(member, epoch)
        if answer[0] or answer[1] == wanted + broker.first:
            return answer
        assert time.monotonic() < deadline, answer


def regular_expressions(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 2)
    for regex in ("(", "a**", "(?=a)", r"(a)\1"):
        yield broker.join_as("a", subscribed_topic_names=None, subscribed_topic_regex=regex)
    broker.join_as("a", subscribed_topic_names=None, subscribed_topic_regex=broker.full(".*"))
    # Kafka resolves the expression in the background: at first it may match nothing.
    deadline = time.monotonic() + WAIT_S
    while broker.describe_as_consumer_group()[0][2] < 2:
        assert time.monotonic() < deadline
        broker.beat_as("a", 0, rebalance_timeout_ms=1000, subscribed_topic_regex=broker.full(".*"), owned=[])
    fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_regex": broker.full(".*"), "owned": []}
    yield broker.beat_as("a", 0, **fields)
    yield broker.describe_as_consumer_group()
    yield broker.beat_as("a", 1, subscribed_topic_regex="", subscribed_topic_names=[broker.full("t")])
    yield broker.describe_as_consumer_group()


def committing(broker: ConsumerSession) -> Iterator[Any]:
    broker.make("t", 4)
    yield broker.commit_as("a", 1, 0)
    yield broker.join_as("a", "t")
    yield [broker.commit_as(member, epoch, 0) for member, epoch in (("a", 1), ("a", 2), ("a", 0), ("a", -1), ("x", 1))]
    yield broker.commit_as("a", 1, 0, version=8)
    yield broker.commit_as("", -1, 0)
    yield broker.join_as("b", "t")
    yield broker.beat_as("a", 1)
    yield broker.commit_as("a", 1, 0, 1, 2, 3)
    yield broker.beat_as("a", 1, owned=True)
    yield [broker.commit_as("a", epoch, 0, 1, 2, 3) for epoch in (0, 1, 2, 3)]
    yield broker.beat_as("b", 2)
    yield [broker.commit_as("b", epoch, 0, 1, 2, 3) for epoch in (1, 2)]
    # An epoch from before is good for what a member had then, and has still (KIP-1251): of all partitions, or of none.
    for member in "ab":
        yield [[broker.commit_as(member, epoch, number) for number in range(5)] for epoch in range(4)]
    yield [broker.commit_as("a", 1, 0, 1), broker.commit_as("a", 1, 1, 2), broker.commit_as("a", 1, 2, 9)]
    yield [broker.fetch_as(member, epoch) for member, epoch in (("a", 2), ("a", 1), ("x", 2), (None, -1), ("a", -1))]
    broker.beat_as("a", -1)
    broker.beat_as("b", -1)
    yield [broker.commit_as("", -1, 0), broker.commit_as("a", 2, 0)]
    yield [broker.fetch_as("a", 2), broker.fetch_as(None, -1)]


def protocols(broker: ConsumerSession, name: str = "range", owned: list[int] | None = None) -> list[Any]:
    """What a classic member that reads t offers; ``owned`` as a cooperative one says it."""
    held = {broker.full("t"): owned} if owned else {}
    metadata = Subscription(topics=[broker.full("t")], owned=held).encode()
    return [consumer.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)]


def synced(broker: ConsumerSession, member: int, generation: int, share: list[int] | None = None, **who: Any) -> Any:
    """A sync, by the partitions that it brings; ``share`` is what the leader gives to that member."""
    row = consumer.SyncGroupRequest.SyncGroupRequestAssignment
    data = Assignment(partitions={broker.full("t"): share or []}).encode()
    assignments = [] if share is None else [row(member_id=broker.ids[member], assignment=data)]
    error, kind, name, assignment = broker.sync(member, generation + broker.first, assignments=assignments, **who)
    partitions = Assignment.decode(assignment).partitions if assignment else {}
    return error, kind, name, sorted(partitions.get(broker.full("t"), ()))


def classic_members_beside_consumers(broker: ConsumerSession) -> Iterator[Any]:
    """The consumer's id sorts before any that a broker makes, so that range gives it the first partitions."""
    broker.make("t", 4)
    yield broker.join_as("!a", "t")
    yield broker.join(protocols=protocols(broker), protocol_type="connect")
    yield broker.join(protocols=protocols(broker))
    yield broker.join(0, protocols=protocols(broker))
    yield broker.describe_as_consumer_group()[0]
    yield [broker.beat(0, 2), broker.beat(0, 1), broker.beat("!a", 1), broker.beat("x", 2), broker.beat(0, 2, "i")]
    yield [synced(broker, 0, 1), synced(broker, 0, 2, protocol_name="other"), synced(broker, 0, 2)]
    yield broker.beat_as("!a", 1)
    yield broker.beat_as("!a", 1, owned=True)
    yield broker.beat(0, 2)
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 2)
    yield broker.beat(0, 2)
    yield broker.join("x", protocols=protocols(broker, "other"))
    yield broker.join("x", protocols=protocols(broker), instance="i")
    yield [broker.commit_as(broker.ids[0], epoch, 0, version=8) for epoch in (2, 1, 3)]
    yield broker.leave((0, None), ("x", None), ("", "i"))
    yield broker.describe_as_consumer_group()[0]
    yield broker.beat(0, 2)
    yield broker.leave(("!a", None))
    yield broker.describe_as_consumer_group()


def a_classic_group_that_is_upgraded_and_downgraded(broker: ConsumerSession) -> Iterator[Any]:
    broker.first = 0  # a classic group begins at 0, and a consumer group goes on from its generation
    broker.make("t", 4)
    broker.join(protocols=protocols(broker))
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 1, [0, 1, 2, 3])
    yield broker.beat_as("a", 1)
    yield broker.beat_as("a", -1)
    yield broker.listed()
    yield broker.join_as("a", "t")
    yield broker.listed()
    yield broker.describe_as_consumer_group()[0]
    yield broker.beat(0, 1)
    yield broker.join(0, protocols=protocols(broker, owned=[0, 1, 2, 3]))
    given = synced(broker, 0, 1)
    yield given
    yield broker.beat(0, 1)
    yield broker.beat_as("a", 2)
    yield broker.join(0, protocols=protocols(broker, owned=given[-1]))
    yield synced(broker, 0, 2)
    yield broker.beat(0, 2)
    yield broker.beat_as("a", 2)
    yield broker.beat_as("a", -1)
    yield broker.listed()
    yield broker.describe()[:4]
    yield broker.beat(0, 2)
    yield broker.join(0, protocols=protocols(broker))
    yield synced(broker, 0, 3, [0, 1, 2, 3])
    yield broker.beat(0, 3)
    yield broker.leave((0, None))
    yield broker.join_as("b", "t")
    yield broker.listed()
    yield broker.beat_as("b", -1)
    yield broker.join(protocols=protocols(broker))
    yield broker.join(1, protocols=protocols(broker))
    yield broker.listed()


def an_upgrade_while_a_member_waits(broker: ConsumerSession, *names: str) -> Iterator[Any]:
    """The member that waits in a rebalance is sent to join again, whether the group can be upgraded or not."""
    broker.make("t", 4)
    offered = [each for name in ("range", "other") for each in protocols(broker, name)]
    generation = broker.join(protocols=offered, version=3)[1] - broker.first
    yield synced(broker, 0, generation, [0, 1, 2, 3])
    waiting = ConsumerSession(f"{broker.socket.getpeername()[0]}:{broker.socket.getpeername()[1]}")
    waiting.group = broker.group
    with closing(waiting), ThreadPoolExecutor(1) as pool:
        joined = pool.submit(lambda: waiting.join(protocols=protocols(broker, *names), version=3)[:2])
        deadline = time.monotonic() + WAIT_S
        while broker.beat(0, generation) != REBALANCE_IN_PROGRESS:
            assert time.monotonic() < deadline
        yield broker.join_as("a", "t")[0]
        yield joined.result(timeout=WAIT_S)
    yield broker.listed()


def an_upgrade_while_a_member_waits_that_lacks_the_protocol(broker: ConsumerSession) -> Iterator[Any]:
    """Its request fails in Kafka with an exception, whose code the new member gets."""
    yield from an_upgrade_while_a_member_waits(broker, "other")


def a_static_member_that_changes_its_protocol(broker: ConsumerSession) -> Iterator[Any]:
    broker.first = 0  # a classic group begins at 0, and a consumer group goes on from its generation
    broker.make("t", 2)
    yield broker.join(protocols=protocols(broker), instance="i")
    yield synced(broker, 0, 1, [0, 1], instance="i")
    yield broker.join_as("a", "t", instance_id="i")
    yield broker.describe_as_consumer_group()
    yield broker.beat(0, 1, "i")
    yield broker.join(protocols=protocols(broker), instance="i")
    yield broker.listed()
    yield synced(broker, 1, 1, instance="i")
    yield broker.beat_as("a", 1, instance_id="i")
    yield broker.beat(1, 1, "i")


@pytest.mark.parametrize(
    "scenario",
    [
        what_a_first_heartbeat_needs,
        members_come_and_go,
        a_revocation_that_takes_long,
        fencing,
        static_members,
        subscriptions_that_change,
        topics_that_grow,
        regular_expressions,
        committing,
        classic_members_beside_consumers,
        a_classic_group_that_is_upgraded_and_downgraded,
        an_upgrade_while_a_member_waits,
        an_upgrade_while_a_member_waits_that_lacks_the_protocol,
        a_static_member_that_changes_its_protocol,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_ours_answers_as_kafka_does(
    apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Callable[[ConsumerSession], Iterator[Any]]
) -> None:
    with (
        closing(ConsumerSession(apache_kafka)) as theirs,
        closing(ConsumerSession(coordinator.bootstrap_servers)) as ours,
    ):
        for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
            assert got == expected, f"answer {step}"
