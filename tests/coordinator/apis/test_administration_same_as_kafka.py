"""What administrators ask: the same requests to Apache Kafka and to ours get the same answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from client_messages import client_request
from configurator import NOW_MS, Configurator
from kafka.protocol import admin
from record_batches import batch
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka


class Administrator(Configurator):
    """A session that asks what administrators ask."""

    def offset(self, timestamp: int, version: int = 11) -> tuple[int, int, int]:
        found = self.listed_offset(timestamp, version=version)
        return found.error_code, found.offset, found.timestamp

    def delete_before(self, offset: int, *, partition: int = 0, topic: str | None = None) -> tuple[int, int]:
        each = {"partition_index": partition, "offset": offset}
        answer = self.ask(
            "DeleteRecords", 2, topics=[{"name": topic or self.topic, "partitions": [each]}], timeout_ms=10_000
        )
        (found,) = answer.topics[0].partitions
        return found.error_code, found.low_watermark

    def fetch_error(self, offset: int) -> tuple[int, int, int]:
        row = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1_000_000}
        request = client_request(
            "Fetch", 12, cluster_id=None, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="",
            topics=[{"topic": self.topic, "partitions": [row]}],
        )  # fmt: skip
        (found,) = self.exchange(request).responses[0].partitions
        return found.error_code, found.high_watermark, found.log_start_offset

    def elected(self, kind: int, *partitions: int) -> Any:
        asked = [{"topic": self.topic, "partitions": list(partitions)}, {"topic": "none", "partitions": [0]}]
        answer = self.ask("ElectLeaders", 2, election_type=kind, topic_partitions=asked, timeout_ms=60_000)
        return answer.error_code, [
            [each.error_code for each in found.partition_result] for found in answer.replica_election_results
        ]

    def reassigned(self, replicas: list[int] | None, topic: str | None = None) -> Any:
        each = {"partition_index": 0, "replicas": replicas}
        answer = self.ask(
            "AlterPartitionReassignments",
            1,
            timeout_ms=60_000,
            topics=[{"name": topic or self.topic, "partitions": [each]}],
        )
        return answer.error_code, [each.error_code for found in answer.responses for each in found.partitions]

    def unregistered(self, broker: int) -> Any:
        answer = self.ask("UnregisterBroker", 0, broker_id=broker)
        return answer.error_code, answer.error_message

    def without_token(self) -> Any:
        made = self.ask("CreateDelegationToken", 3, max_lifetime_ms=-1)
        described = self.ask("DescribeDelegationToken", 3, owners=None)
        times = made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms
        names = made.principal_type, made.principal_name, made.token_requester_principal_name
        return made.error_code, times, names, made.token_id, made.hmac, described.error_code, described.tokens

    def log_dirs(self, *partitions: int, topic: str | None = None) -> Any:
        answer = self.ask("DescribeLogDirs", 4, topics=[{"topic": topic or self.topic, "partitions": list(partitions)}])
        (directory,) = answer.results
        sizes = [
            (each.partition_index, each.partition_size, each.offset_lag, each.is_future_key)
            for found in directory.topics for each in found.partitions
        ]  # fmt: skip
        return answer.error_code, directory.error_code, directory.total_bytes > directory.usable_bytes > 0, sizes


def deleting_records(broker: Administrator) -> Iterator[Any]:
    for number in range(4):
        broker.append(batch([b"x", b"y"], timestamp=NOW_MS + 10 * number))
    yield broker.delete_before(3), broker.end(), broker.offset(-2)
    yield [broker.fetch_error(offset) for offset in (2, 3, 8, 9)]
    yield broker.offset(NOW_MS), broker.offset(NOW_MS + 11), broker.offset(-3)
    yield [broker.delete_before(offset) for offset in (1, 3, 9, -2, -1, 8)]
    yield broker.delete_before(0, partition=7), broker.delete_before(0, topic="none")
    yield broker.end(), broker.offset(-2), broker.append(batch([b"z"], timestamp=NOW_MS))


def listing_offsets(broker: Administrator) -> Iterator[Any]:
    broker.append(batch([b"x"], timestamp=NOW_MS))
    for version in range(1, 12):
        yield version, [broker.offset(timestamp, version) for timestamp in range(-7, 0)]


def asking(broker: Administrator) -> Iterator[Any]:
    broker.append(batch([b"x"], timestamp=NOW_MS))
    yield [broker.elected(kind, 0, 9) for kind in (0, 1)]
    yield [broker.reassigned(each) for each in ([1], [2], [], [1, 1], None)], broker.reassigned([1], topic="none")
    yield broker.unregistered(9), broker.without_token()
    yield broker.log_dirs(0, 5), broker.log_dirs(0, topic="none")


def describing_topics(broker: Administrator) -> Iterator[Any]:
    names = [broker.make(partitions=3)[1] for _ in range(2)]

    def page(limit: int, cursor: Any = None) -> Any:
        topics = [{"name": name} for name in [*names, "a/b", "none"]]
        answer = broker.ask("DescribeTopicPartitions", 0, topics=topics, response_partition_limit=limit, cursor=cursor)
        order = sorted(names)
        seen = [
            (order.index(found.name) if found.name in order else found.name, found.error_code, found.is_internal,
             [(each.partition_index, each.leader_id, each.leader_epoch, each.replica_nodes, each.isr_nodes,
               each.eligible_leader_replicas, each.offline_replicas) for each in found.partitions])
            for found in answer.topics
        ]  # fmt: skip
        after = answer.next_cursor
        return seen, None if after is None else (order.index(after.topic_name), after.partition_index)

    yield [page(limit) for limit in (1, 2, 3, 4, 5, 6, 100)]
    yield [page(2, {"topic_name": sorted(names)[index], "partition_index": at}) for index in (0, 1) for at in (0, 2)]


def features(broker: Administrator) -> Iterator[Any]:
    ours = {"eligible.leader.replicas.version", "group.version", "transaction.version", "metadata.version"}
    for version in range(5):
        answer = broker.ask("ApiVersions", version, client_software_name="a", client_software_version="1")
        rows = [(each.name, each.min_version, each.max_version) for each in answer.supported_features or ()]
        final = [
            (each.name, each.max_version_level, each.min_version_level) for each in answer.finalized_features or ()
        ]
        yield [sorted(each for each in some if each[0] in ours) for some in (rows, final)]


def quotas(broker: Administrator) -> Iterator[Any]:
    row, component = admin.AlterClientQuotasRequest.EntryData, admin.DescribeClientQuotasRequest.ComponentData
    user, client = f"u-{uuid4()}", f"c-{uuid4()}"

    def alter(entity: list[tuple[str, str | None]], *changes: tuple[str, float | None], check: bool = False) -> int:
        entry = row(
            entity=[row.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
            ops=[row.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes],
        )
        (found,) = broker.ask("AlterClientQuotas", 1, entries=[entry], validate_only=check).entries
        return int(found.error_code)

    def described(*wanted: tuple[str, int, str | None], strict: bool = False) -> Any:
        rows = [component(entity_type=kind, match_type=match, match=name) for kind, match, name in wanted]
        answer = broker.ask("DescribeClientQuotas", 1, components=rows, strict=strict)
        entries = [
            (sorted(each.entity_type for each in entry.entity), sorted((each.key, each.value) for each in entry.values))
            for entry in answer.entries or ()
        ]
        return answer.error_code, answer.entries is None, sorted(entries)

    def awaited(*wanted: tuple[str, int, str | None], count: int) -> Any:
        deadline = time.monotonic() + WAIT_S
        while len((found := described(*wanted))[2]) != count:
            assert time.monotonic() < deadline  # Kafka's broker hears of it some time after the answer
        return found

    yield alter([("user", user)], ("producer_byte_rate", 5.0)), awaited(("user", 0, user), count=1)
    yield alter([("user", user), ("client-id", client)], ("consumer_byte_rate", 7.0))
    yield awaited(("user", 0, user), count=2), described(("user", 0, user), strict=True)
    yield described(("client-id", 0, client)), described(("user", 0, user), ("client-id", 2, None))
    yield alter([("user", user)], ("producer_byte_rate", None)), awaited(("user", 0, user), count=1)
    yield alter([("user", user)], ("nonsense", 1.0)), alter([("planet", user)], ("producer_byte_rate", 1.0)), alter([])
    yield alter([("ip", "127.0.0.1"), ("user", user)], ("connection_creation_rate", 1.0))
    yield alter([("user", user)], ("connection_creation_rate", 1.0)), alter([("user", user)], ("x", 1.0), check=True)
    values = [-1.0, 0.0, 0.5, 5.0000001, 9.3e18, float("nan")]
    for entity, key in [(("user", user), "producer_byte_rate"), (("user", user), "request_percentage"),
                        (("ip", "10.0.0.1"), "connection_creation_rate")]:  # fmt: skip
        yield [alter([entity], (key, value), check=True) for value in values]
    yield [alter([("ip", name)], ("connection_creation_rate", 1.0), check=True) for name in ("::1", "a b", None)]
    yield alter([("user", user)], ("nonsense", None)), alter([("user", user)], ("nonsense", 1.0), ("nonsense", 2.0))
    yield described(("planet", 2, None)), described(("user", 2, None), ("user", 2, None)), described(("user", 9, None))
    yield described(("ip", 2, None), ("user", 2, None)), described(("user", 0, "none"))


def access(broker: Administrator) -> Iterator[Any]:
    request = client_request(
        "DescribeAcls", 3, resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    described = broker.exchange(request)
    yield described.error_code, described.error_message
    row = {
        "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:u", "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip
    answer = broker.ask("CreateAcls", 3, creations=[row])
    yield [(each.error_code, each.error_message) for each in answer.results]
    row = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
        "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    deleted = broker.ask("DeleteAcls", 3, filters=[row])
    yield [(each.error_code, each.error_message) for each in deleted.filter_results]


@scenarios(quotas, access, deleting_records, listing_offsets, asking, describing_topics, features)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, Administrator, apache_kafka, coordinator.bootstrap_servers, begin=Administrator.make)
