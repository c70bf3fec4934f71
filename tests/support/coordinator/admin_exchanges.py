"""The APIs of administrators, each asked over a wire in one of its versions: for ``test_every_version.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from client_messages import client_request
from wires import only

from loadwise.protocol.error_codes import ErrorCode


def delete_records(wire: Any, version: int) -> None:
    def delete(partition: int, offset: int) -> tuple[int, int]:
        each = {"partition_index": partition, "offset": offset}
        answer = wire.ask("DeleteRecords", version, topics=[{"name": "t", "partitions": [each]}], timeout_ms=1000)
        found = only(only(answer.topics).partitions)
        return found.error_code, found.low_watermark

    log = wire.cluster.topics.log("t", 0)
    assert delete(0, 2) == (0, 2)
    assert (log.start_offset, log.end_offset) == (2, 3)
    assert delete(0, -1) == (0, 3)
    assert log.size_bytes == 0
    assert delete(0, 9) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete(9, 0) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def describe_log_dirs(wire: Any, version: int) -> None:
    size = wire.cluster.topics.log("t", 0).size_bytes
    directory = only(wire.ask("DescribeLogDirs", version, topics=None).results)
    sizes = [(each.partition_index, each.partition_size) for each in only(directory.topics).partitions]
    assert sizes == [(0, size), (1, 0)]
    asked = [{"topic": "t", "partitions": [1, 9]}, {"topic": "none", "partitions": [0]}]
    directory = only(wire.ask("DescribeLogDirs", version, topics=asked).results)
    assert only(only(directory.topics).partitions).partition_index == 1


def describe_topic_partitions(wire: Any, version: int) -> None:
    def describe(limit: int, cursor: Any = None) -> Any:
        topics = [{"name": "t"}, {"name": "none"}]
        return wire.ask(
            "DescribeTopicPartitions", version, topics=topics, response_partition_limit=limit, cursor=cursor
        )

    missing, found = describe(10).topics
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [(each.partition_index, each.leader_id) for each in found.partitions] == [(0, 1), (1, 1)]
    first = describe(1)
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == ("t", 1)
    rest = describe(1, {"topic_name": "t", "partition_index": 1})
    assert only(only(rest.topics).partitions).partition_index == 1
    assert rest.next_cursor is None


def elect_leaders(wire: Any, version: int) -> None:
    row = {"topic": "t", "partitions": [0, 9]}
    answer = wire.ask("ElectLeaders", version, election_type=0, topic_partitions=[row], timeout_ms=1000)
    result = only(answer.replica_election_results)
    errors = [each.error_code for each in result.partition_result]
    assert errors == [ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def alter_partition_reassignments(wire: Any, version: int) -> None:
    def reassign(replicas: list[int] | None) -> int:
        each = {"partition_index": 0, "replicas": replicas}
        answer = wire.ask(
            "AlterPartitionReassignments", version, timeout_ms=1000, topics=[{"name": "t", "partitions": [each]}]
        )
        return int(only(only(answer.responses).partitions).error_code)

    assert reassign([1]) == 0
    assert reassign([2]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert reassign(None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def list_partition_reassignments(wire: Any, version: int) -> None:
    answer = wire.ask("ListPartitionReassignments", version, timeout_ms=1000)
    assert (answer.error_code, answer.topics) == (0, [])


def describe_quorum(wire: Any, version: int) -> None:
    asked = [{"topic_name": name, "partitions": [{"partition_index": 0}]} for name in ("__cluster_metadata", "t")]
    found = only(wire.ask("DescribeQuorum", version, topics=asked[:1]).topics)
    assert (only(found.partitions).leader_id, only(only(found.partitions).current_voters).replica_id) == (1, 1)
    both = wire.ask("DescribeQuorum", version, topics=asked).topics
    assert [only(each.partitions).error_code for each in both] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2


def client_quotas(wire: Any, alter_version: int, describe_version: int) -> None:
    def alter(kind: str, name: str | None, key: str, value: float | None) -> int:
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name}],
            "ops": [{"key": key, "value": value or 0.0, "remove": value is None}],
        }
        answer = wire.ask("AlterClientQuotas", alter_version, entries=[entry], validate_only=False)
        return int(only(answer.entries).error_code)

    def described(kind: str, match: int, name: str | None = None) -> dict[str | None, dict[str, float]]:
        component = {"entity_type": kind, "match_type": match, "match": name}
        entries = wire.ask("DescribeClientQuotas", describe_version, components=[component], strict=True).entries
        return {only(each.entity).entity_name: {found.key: found.value for found in each.values} for each in entries}

    assert alter("user", "u", "producer_byte_rate", 5.0) == alter("user", None, "request_percentage", 7.0) == 0
    assert alter("user", "u", "nonsense", 5.0) == alter("planet", "u", "producer_byte_rate", 5.0) == 42
    assert described("user", 0, "u") == {"u": {"producer_byte_rate": 5.0}}
    assert described("user", 1) == {None: {"request_percentage": 7.0}}
    assert len(described("user", 2)) == 2
    assert described("client-id", 2) == {}
    assert alter("user", "u", "producer_byte_rate", None) == 0
    assert described("user", 0, "u") == {}


def alter_client_quotas(wire: Any, version: int) -> None:
    client_quotas(wire, version, 1)


def describe_client_quotas(wire: Any, version: int) -> None:
    client_quotas(wire, 1, version)


def create_acls(wire: Any, version: int) -> None:
    row = {
        "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:u", "host": "*",
        "operation": 3, "permission_type": 3,
    }  # fmt: skip
    answer = wire.ask("CreateAcls", version, creations=[row])
    assert only(answer.results).error_code == ErrorCode.SECURITY_DISABLED


def describe_acls(wire: Any, version: int) -> None:
    request = client_request(
        "DescribeAcls", version, resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1,
        principal_filter=None, host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    assert wire.exchange(request).error_code == ErrorCode.SECURITY_DISABLED


def delete_acls(wire: Any, version: int) -> None:
    row = {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None,
        "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip
    answer = wire.ask("DeleteAcls", version, filters=[row])
    assert only(answer.filter_results).error_code == ErrorCode.SECURITY_DISABLED


def unregister_broker(wire: Any, version: int) -> None:
    def unregister(broker: int) -> int:
        return int(wire.ask("UnregisterBroker", version, broker_id=broker).error_code)

    assert (unregister(9), unregister(1)) == (ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.INVALID_REQUEST)


def _no_token(api: str, **values: Any) -> Callable[[Any, int], None]:
    def ask(wire: Any, version: int) -> None:
        assert wire.ask(api, version, **values).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    return ask


create_delegation_token = _no_token("CreateDelegationToken", max_lifetime_ms=-1)
describe_delegation_token = _no_token("DescribeDelegationToken", owners=None)
expire_delegation_token = _no_token("ExpireDelegationToken", hmac=b"x", expiry_time_period_ms=-1)
renew_delegation_token = _no_token("RenewDelegationToken", hmac=b"x", renew_period_ms=-1)
