"""Topics, records and offsets: the same requests to Apache Kafka and to ours get the same answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from client_messages import client_request
from record_batches import batch
from sessions import Session
from topics import until

from loadwise.coordinator import ThreadedCoordinator
from loadwise.protocol.error_codes import ErrorCode

pytestmark = pytest.mark.kafka

NOW_MS = int(time.time() * 1000)
GZIP = 1


def whole(records: bytes) -> bytes:
    """Without the batch at the end that is cut short: Kafka sends the part of it that fits, ours whole batches."""
    end = 0
    while len(records) >= end + 12:
        after = end + 12 + int.from_bytes(records[end + 8 : end + 12])
        if after > len(records):
            break
        end = after
    return records[:end]


class Records(Session):
    """A session with a topic of two partitions."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        assert self.create_topic(partitions=2) == 0
        self.wait_for_topic()
        answer = self.ask("Metadata", 12, topics=[{"name": self.topic}], allow_auto_topic_creation=False)
        self.topic_id: UUID = answer.topics[0].topic_id
        self._wait_for_leaders()

    def _wait_for_leaders(self) -> None:
        """Kafka tells of a topic some time before its broker leads the partitions."""
        until(lambda: not any(self.offsets(-1, partition=number)[0][0] for number in (0, 1)))

    def fetch(self, *partitions: tuple[int, int, int], version: int = 12, **changes: Any) -> Any:
        """Fetch partitions, each as number, offset and most bytes."""
        rows = [
            {
            "partition": number, "current_leader_epoch": changes.pop("epoch", -1), "fetch_offset": offset,
            "partition_max_bytes": most,
        }
            for number, offset, most in partitions
        ]  # fmt: skip
        fields: dict[str, Any] = {
            "cluster_id": None, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, "rack_id": "",
            "topics": [{"topic": self.topic, "topic_id": self.topic_id, "partitions": rows}] if rows else [],
            "forgotten_topics_data": [],
        }  # fmt: skip
        reply = self.ask("Fetch", version, **fields | changes)
        return reply.error_code, [
            (each.partition_index, each.error_code, each.high_watermark, each.last_stable_offset,
             each.log_start_offset, each.preferred_read_replica, whole(bytes(each.records or b"")))
            for found in reply.responses for each in found.partitions
        ]  # fmt: skip

    def offsets(self, *timestamps: int, version: int = 8, epoch: int = -1, partition: int = 0) -> Any:
        answers = []
        for timestamp in timestamps:
            found = self.listed_offset(timestamp, version=version, partition=partition, epoch=epoch)
            answers.append((found.error_code, found.offset, found.timestamp, found.leader_epoch))
        return answers

    def end_of_epoch(self, epoch: int, current: int = -1, partition: int = 0) -> Any:
        row = {"partition": partition, "current_leader_epoch": current, "leader_epoch": epoch}
        answer = self.ask("OffsetForLeaderEpoch", 4, replica_id=-1, topics=[{"topic": self.topic, "partitions": [row]}])
        (found,) = answer.topics[0].partitions
        return found.error_code, found.leader_epoch, found.end_offset

    def grow(self, name: str, count: int, brokers: list[list[int]] | None = None, check: bool = False) -> int:
        assignments = None if brokers is None else [{"broker_ids": each} for each in brokers]
        request = client_request(
            "CreatePartitions", 3, topics=[{"name": name, "count": count, "assignments": assignments}],
            timeout_ms=10_000, validate_only=check,
        )  # fmt: skip
        return int(self.exchange(request).results[0].error_code)

    def grow_twice(self, count: int) -> Any:
        row = {"name": self.topic, "count": count}
        results = self.ask("CreatePartitions", 3, topics=[row, row], timeout_ms=10_000, validate_only=False).results
        return [(each.name == self.topic, each.error_code, each.error_message) for each in results]

    def configs(self, kind: int, name: str, *keys: str) -> Any:
        row = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
        (found,) = self.ask("DescribeConfigs", 4, resources=[row]).results
        rows = [(each.name, each.value, each.config_type, each.read_only, each.is_sensitive) for each in found.configs]
        return found.error_code, sorted(rows) if keys else []

    def make(self, **fields: Any) -> Any:
        assignments = [
            {"partition_index": number, "broker_ids": brokers} for number, brokers in fields.pop("assignments", [])
        ]
        defaults: dict[str, Any] = {
            "name": f"{self.topic}-{uuid4()}", "num_partitions": -1, "replication_factor": -1,
            "assignments": assignments, "configs": [],
        }  # fmt: skip
        (made,) = self.ask("CreateTopics", 7, topics=[{**defaults | fields}], timeout_ms=10_000).topics
        return made.error_code, made.num_partitions, made.replication_factor

    def drop(self, name: str | None, topic_id: UUID | None = None) -> int:
        row = {"name": name, "topic_id": topic_id}
        return int(self.ask("DeleteTopics", 6, topics=[row], timeout_ms=10_000).responses[0].error_code)


def fetching(broker: Records) -> Iterator[Any]:
    small, large = batch([b"a"], timestamp=NOW_MS), batch([b"b" * 3000], timestamp=NOW_MS)
    for data in (small, large, small):
        assert broker.produce(data)[0] == 0
    yield broker.fetch((0, 0, 10_000), (1, 0, 10_000))
    yield broker.fetch((0, 0, 1), (1, 0, 1))
    yield broker.fetch((0, 0, 10_000), max_bytes=1)
    yield broker.fetch((0, 0, len(small)), (1, 0, 100))
    yield broker.fetch((0, 0, len(small) + len(large)))
    yield broker.fetch((0, 1, 0))
    yield [broker.fetch((0, offset, 10_000)) for offset in (2, 3, 4, -1, -7)]
    yield broker.fetch((7, 0, 100))
    yield broker.fetch((0, 3, 100), max_wait_ms=5)
    yield broker.fetch((0, 3, 100), (7, 0, 100), max_wait_ms=5)  # ours tells the error at once, Kafka after that time
    yield broker.fetch((0, 0, 10_000), min_bytes=2_000_000, max_wait_ms=60_000, max_bytes=1000)
    yield broker.fetch(max_wait_ms=60_000)
    yield [broker.fetch((0, 0, 100), epoch=epoch) for epoch in (0, 5)]
    for session_id, epoch in ((0, -1), (0, 0), (0, 1), (77, -1), (77, 0), (77, 3)):
        yield broker.fetch((0, 2, 100), session_id=session_id, session_epoch=epoch)
    yield [broker.fetch((0, 2, 100), version=version) for version in range(4, 18)]
    yield [broker.fetch((0, 2, 100), rack_id=rack) for rack in ("", "a")]
    broker.topic_id = uuid4()
    yield broker.fetch((0, 0, 100), version=13)


def listing_offsets(broker: Records) -> Iterator[Any]:
    yield broker.offsets(-1, -2, -3, -4, 0, 5)
    for number in range(3):
        assert broker.produce(batch([b"x", b"y"], timestamp=NOW_MS + 10 * number))[0] == 0
    late = [NOW_MS - 1, NOW_MS, NOW_MS + 1, NOW_MS + 2, NOW_MS + 21, NOW_MS + 22]
    yield broker.offsets(-1, -2, -3, -4, *late)
    yield [broker.offsets(-1, -2, NOW_MS + 11, version=version) for version in range(1, 9)]
    yield [broker.offsets(-1, epoch=epoch) for epoch in (0, 3)]
    yield broker.offsets(-1, partition=9)
    yield [broker.end_of_epoch(epoch) for epoch in (0, 1, 5, -1)]
    yield [broker.end_of_epoch(0, current) for current in (0, 4)]
    yield broker.end_of_epoch(0, partition=9)


def compressing(broker: Records) -> Iterator[Any]:
    yield broker.produce(batch([b"a" * 50, b"b" * 50], timestamp=NOW_MS, compression=GZIP))
    yield broker.offsets(NOW_MS, NOW_MS + 1, NOW_MS + 2, -3)
    yield broker.fetch((0, 0, 10_000))


def sequences(broker: Records) -> Iterator[Any]:
    def send(epoch: int, sequence: int, records: int = 1, producer_id: int = 7_000_001) -> Any:
        return broker.produce(batch([b"x"] * records, timestamp=NOW_MS, producer=(producer_id, epoch, sequence)))

    yield [send(0, sequence) for sequence in range(7)]
    yield [send(0, sequence) for sequence in (6, 5, 2, 1, 0, 8, 7, 7)]
    yield [send(0, 8, 3), send(0, 8, 3), send(0, 8, 2), send(0, 9, 2), send(0, 11)]
    yield [send(2, 4), send(2, 0), send(1, 1), send(0, 12), send(2, 1)]
    yield [send(0, 5, producer_id=7_000_002), send(0, 6, producer_id=7_000_002)]
    yield [send(5, 2**31 - 1, 2, producer_id=7_000_003), send(5, 1, producer_id=7_000_003)]
    request = client_request("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
    # Kafka asks its controller for ids at first
    until(lambda: broker.exchange(request).error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    given = [broker.exchange(request) for _ in range(2)]
    yield [(each.error_code, each.producer_epoch) for each in given]
    assert given[0].producer_id != given[1].producer_id


def topics(broker: Records) -> Iterator[Any]:
    yield [broker.make(), broker.make(num_partitions=3), broker.make(replication_factor=1)]
    yield [broker.make(assignments=[(0, [1]), (1, [1])]), broker.make(assignments=[(1, [1]), (0, [1])])]
    wrong: list[list[tuple[int, list[int]]]] = [[(0, [9])], [(0, [])], [(0, [1, 1])], [(1, [1])], [(0, [1]), (0, [1])]]
    yield [broker.make(assignments=each) for each in wrong]
    yield [broker.make(assignments=[(0, [1])], **also) for also in ({"num_partitions": 1}, {"replication_factor": 1})]
    yield [broker.make(replication_factor=factor) for factor in (0, -2, 2)]
    yield [broker.make(configs=[{"name": "max.message.bytes", "value": each}]) for each in ("x", "-1", "100")]
    grown = [(broker.topic, 2), (broker.topic, 1), (broker.topic, 0), (broker.topic, -1), (f"{broker.topic}-none", 3)]
    yield [broker.grow(name, count) for name, count in grown]
    some: list[list[list[int]]] = [[[1]], [[9], [1]], [[1], [1], [1]], [[], [1]], [[1, 1], [1]]]
    yield [broker.grow(broker.topic, 4, brokers) for brokers in some]
    yield broker.grow_twice(9)
    yield [broker.grow(broker.topic, 3, check=True), broker.grow(broker.topic, 3, [[1]]), broker.grow(broker.topic, 3)]
    yield [broker.configs(2, broker.topic), broker.configs(2, f"{broker.topic}-none"), broker.configs(2, "a/b")]
    some_keys = ("cleanup.policy", "no.such.key", "max.message.bytes", "retention.bytes", "compression.type")
    yield broker.configs(2, broker.topic, *some_keys)
    yield [broker.configs(4, "1"), broker.configs(4, "9"), broker.configs(4, "x"), broker.configs(4, "")]
    yield broker.configs(4, "1", "num.partitions", "node.id", "group.max.size", "default.replication.factor")
    yield broker.configs(4, "1", "auto.create.topics.enable", "message.max.bytes", "group.max.session.timeout.ms")
    yield broker.configs(4, "1", "group.consumer.max.size", "group.consumer.session.timeout.ms")
    yield [broker.drop(f"{broker.topic}-none"), broker.drop(None, uuid4()), broker.drop(broker.topic)]


def groups_at_once(broker: Records) -> Iterator[Any]:
    names = [broker.group, f"{broker.group}-none", ""]
    found = broker.ask("FindCoordinator", 4, key_type=0, coordinator_keys=names).coordinators
    yield [(each.key == name, each.error_code, each.node_id) for each, name in zip(found, names, strict=True)]
    yield broker.ask("FindCoordinator", 4, key_type=0).coordinators
    for version in range(7):
        answer = broker.ask("FindCoordinator", version, key=broker.group, key_type=0, coordinator_keys=[broker.group])
        answer = answer if version < 4 else answer.coordinators[0]
        yield version, answer.error_code, answer.node_id
    yield broker.commit("", -1)
    for version in range(1, 10):
        yield version, committed(broker, version)
    listed = {}
    for states in ([], ["Empty"], ["empty"], ["Stable"], ["Nonsense"]):
        for types in ([], ["classic"], ["CLASSIC"], ["consumer"], ["nonsense"]):
            answer = broker.ask("ListGroups", 5, states_filter=states, types_filter=types)
            rows = [(each.protocol_type, each.group_state, each.group_type) for each in answer.groups
                    if each.group_id == broker.group]  # fmt: skip
            listed[*states, "/", *types] = (answer.error_code, rows)
    yield listed
    yield [unknown(broker, version) for version in (0, 4, 5, 6)]
    for name, group in ((broker.topic, broker.group), ("none", broker.group), (broker.topic, "none"), ("none", "")):
        rows = [{"partition_index": number} for number in (0, 1, 9)]
        answer = broker.ask("OffsetDelete", 0, group_id=group, topics=[{"name": name, "partitions": rows}])
        errors = [(each.partition_index, each.error_code) for found in answer.topics for each in found.partitions]
        yield answer.error_code, sorted(errors)
    yield committed(broker, 8)


def committed(broker: Records, version: int) -> Any:
    """The offsets of the group, of a group that is not there, of all partitions, and of a topic that is not there."""
    answers: list[Any] = []
    missing = f"{broker.group}-none"
    asked: list[tuple[str, list[str] | None]] = [(broker.group, [broker.topic]), (broker.group, None), (missing, None)]
    asked += [(missing, [broker.topic]), (broker.group, ["none"]), ("", [broker.topic])]
    for name, wanted in asked:
        if wanted is None and version < 2:
            continue
        topics = None if wanted is None else [{"name": each, "partition_indexes": [0, 1, 9]} for each in wanted]
        of_group = None if wanted is None else [
            {"name": each, "partition_indexes": [0, 1, 9]} for each in wanted
        ]  # fmt: skip
        request = client_request(
            "OffsetFetch", version, group_id=name, topics=topics, groups=[{"group_id": name, "topics": of_group}],
        )  # fmt: skip
        answer = broker.exchange(request)
        answer = answer.groups[0] if version >= 8 else answer
        answers.append((
            answer.error_code if version >= 2 else 0,
            [(each.partition_index, each.committed_offset, each.metadata, each.error_code)
             for found in answer.topics for each in found.partitions],
        ))  # fmt: skip
    return answers


def unknown(broker: Records, version: int) -> Any:
    groups = broker.ask("DescribeGroups", version, groups=[f"{broker.group}-none", ""]).groups
    return [(each.error_code, each.group_state, each.protocol_type, list(each.members)) for each in groups]


def null_and_broken_batches(broker: Records) -> Iterator[Any]:
    good = batch([b"a"], timestamp=NOW_MS)
    yield [broker.produce(good[:16] + bytes([magic]) + good[17:])[0] for magic in (0, 1, 3)]
    yield [broker.produce(good[:length])[0] for length in (1, 12, 17, 60, 61)]


@scenarios(fetching, listing_offsets, compressing, sequences, topics, groups_at_once, null_and_broken_batches)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, Records, apache_kafka, coordinator.bootstrap_servers)
