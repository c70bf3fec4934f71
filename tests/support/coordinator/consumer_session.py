"""Asking a broker by hand for what consumer groups need (KIP-848); answers are reduced to what can be compared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from client_messages import client_request
from sessions import Session
from topics import WAIT_S

from loadwise.protocol.consumer import Assignment, Subscription


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
        row = {"name": self.full(name), "count": partitions}
        answer = self.ask("CreatePartitions", 3, topics=[row], timeout_ms=10_000, validate_only=False)
        assert answer.results[0].error_code == 0
        self.await_topic(name, partitions)

    def await_topic(self, name: str, partitions: int) -> None:
        request = client_request("Metadata", 12, topics=[{"name": self.full(name)}], allow_auto_topic_creation=False)
        deadline = time.monotonic() + WAIT_S
        while True:
            (topic,) = self.exchange(request).topics
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
        if owned is True:
            rows = [{"topic_id": each, "partitions": numbers} for each, numbers in self.given.get(member, {}).items()]
        elif owned is not None and owned is not False:
            ids = {name: topic_id for topic_id, name in self.topics.items()}
            rows = [{"topic_id": ids[name], "partitions": numbers} for name, numbers in owned]
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
        reply = self.ask("ConsumerGroupHeartbeat", **fields | changes)
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
        (group,) = self.ask("ConsumerGroupDescribe", 1, group_ids=[self.group]).groups
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

    def commit_as(self, member: str, epoch: int, *partitions: int, name: str = "t", version: int = 9) -> list[int]:
        rows = [{"partition_index": each, "committed_offset": 0, "committed_metadata": None} for each in partitions]
        answer = self.ask(
            "OffsetCommit",
            version,
            group_id=self.group,
            generation_id_or_member_epoch=epoch + self.first if epoch >= 0 else epoch,
            member_id=member,
            topics=[{"name": self.full(name), "partitions": rows}],
        )
        answer = answer.topics[0].partitions
        return [each.error_code for each in sorted(answer, key=lambda each: each.partition_index)]

    def fetch_as(self, member: str | None, epoch: int) -> Any:
        sent = epoch + self.first if epoch >= 0 else epoch
        topic = {"name": self.full("t"), "partition_indexes": [0]}
        reply = self.ask(
            "OffsetFetch",
            9,
            groups=[{"group_id": self.group, "member_id": member, "member_epoch": sent, "topics": [topic]}],
            require_stable=False,
        )
        (answer,) = reply.groups
        return answer.error_code, [
            each.committed_offset for each in answer.topics[0].partitions
        ] if answer.topics else []


def protocols(broker: ConsumerSession, name: str = "range", owned: list[int] | None = None) -> list[Any]:
    """What a classic member that reads t offers; ``owned`` as a cooperative one says it."""
    held = {broker.full("t"): owned} if owned else {}
    metadata = Subscription(topics=[broker.full("t")], owned=held).encode()
    return [{"name": name, "metadata": metadata}]


def synced(broker: ConsumerSession, member: int, generation: int, share: list[int] | None = None, **who: Any) -> Any:
    """A sync, by the partitions that it brings; ``share`` is what the leader gives to that member."""
    data = Assignment(partitions={broker.full("t"): share or []}).encode()
    assignments = [] if share is None else [{"member_id": broker.ids[member], "assignment": data}]
    error, kind, name, assignment = broker.sync(member, generation + broker.first, assignments=assignments, **who)
    partitions = Assignment.decode(assignment).partitions if assignment else {}
    return error, kind, name, sorted(partitions.get(broker.full("t"), ()))
