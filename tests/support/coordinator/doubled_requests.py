"""A request of each API that has arrays, with one element of one array doubled, and what a broker does with it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any
from uuid import UUID, uuid4

from client_messages import client_request
from record_batches import batch
from topics import until
from transactors import NOW_MS, Transactor

from loadwise.protocol.consumer import Subscription
from loadwise.protocol.error_codes import ErrorCode

Values = dict[str, Any]
Request = tuple[str, int, Values]

_LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_NOT_COMPARED = {
    "throttle_time_ms", "error_message", "member_id", "leader", "producer_id", "log_append_time_ms", "cluster_id",
    "port", "log_dir", "total_bytes", "usable_bytes", "high_watermark", "log_end_offset", "last_fetch_timestamp",
    "last_caught_up_timestamp", "assignment",
}  # fmt: skip
"""What differs by itself."""
_EPOCHS_OF_CONTROLLERS = {"DescribeQuorum": {"leader_epoch"}}
"""What differs by itself in one API: a busy Kafka elects its controller again."""
_OTHER_PARTITION = {"index", "partition", "partition_index", "partition_indexes", "partitions"}
_CHANGED: Mapping[str, Callable[[Any], Any]] = {
    "committed_offset": lambda value: value + 1,
    "count": lambda value: value + 1,
    "current_leader_epoch": lambda value: value + 2,
    "fetch_offset": lambda value: value + 1,
    "iterations": lambda value: value + 1,
    "metadata": lambda value: value + b"more",
    "num_partitions": lambda value: value + 1,
    "offset": lambda value: value + 1,
    "records": lambda _: batch([b"y", b"z"], timestamp=NOW_MS),
    "start_offset": lambda value: value + 1,
    "timestamp": lambda value: value - 1,
    "value": lambda value: value + 1 if isinstance(value, float) else value and value + "1",
}
"""How a second element with the same key differs, by the fields that are no keys."""


class Doubler(Transactor):
    """A session with a topic of two partitions and three records, a group with an offset, and a transactional id."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.name = f"name-{uuid4()}"
        self.missing = f"missing-{uuid4()}"
        self.twin = self.topic.replace("-", ".")
        self.labels: dict[Any, str] = {}
        for name, label in (
            (self.missing, "missing"),
            (self.twin, "topic's twin"),
            (self.topic, "topic"),
            (self.group, "group"),
            (self.name, "name"),
            (self.transactional_id, "id"),
        ):
            self.labels[name] = label
        self.topic_id = self.id_of(self.topic)
        self.labels[self.topic_id] = "topic's id"
        until(lambda: self.produce(batch([b"a", b"b", b"c"], timestamp=NOW_MS))[0] == ErrorCode.NONE)
        assert self.again(lambda: (self.commit("", -1),))[0] == ErrorCode.NONE

    def id_of(self, topic: str) -> UUID:
        request = client_request("Metadata", 12, topics=[{"name": topic}], allow_auto_topic_creation=False)
        found: UUID = self.exchange(request).topics[0].topic_id
        return found

    def answer(self, request: Request) -> Any:
        """The answer of a request, as rows that can be compared: their order is that of hash maps in Kafka."""
        api, version, values = request
        made = client_request(api, version, **values)

        def once() -> tuple[int, Any]:
            left_out = _NOT_COMPARED | _EPOCHS_OF_CONTROLLERS.get(api, set())
            found = self.plain(self.exchange(copy.deepcopy(made)), left_out)
            codes = list(errors_in(found))
            return (codes[0] if codes and set(codes) <= _LATER else 0), found

        return self.again(once, also=_LATER)[1]  # type: ignore[arg-type]

    def plain(self, value: Any, left_out: Set[str] = _NOT_COMPARED) -> Any:
        if isinstance(value, list | tuple | set):
            return sorted((self.plain(each, left_out) for each in value), key=repr)
        if isinstance(value, str | UUID):
            return self.labels.get(value, value if isinstance(value, str) else "an id")
        if not hasattr(value, "fields"):
            return value
        found = {name: self.plain(getattr(value, name), left_out) for name in value.fields if hasattr(value, name)}
        return {name: each for name, each in found.items() if name not in left_out and each is not None}

    def state(self) -> Any:
        """What requests may have changed."""
        topics = client_request("Metadata", 12, topics=[{"name": self.topic}], allow_auto_topic_creation=False)
        (topic,) = self.exchange(topics).topics
        fetched = self.ask("OffsetFetch", 8, groups=[{"group_id": self.group, "topics": None}], require_stable=False)
        config = {"resource_type": 2, "resource_name": self.topic, "configuration_keys": ["retention.ms"]}
        (configs,) = self.ask("DescribeConfigs", 4, resources=[config]).results
        component = {"entity_type": "user", "match_type": 0, "match": self.name}
        quotas = self.ask("DescribeClientQuotas", 1, components=[component], strict=False)
        users = self.ask("DescribeUserScramCredentials", 0, users=[{"name": self.name}])
        return {
            "topic": (topic.error_code, len(topic.partitions)),
            "ends": [self.listed_offset(when).offset for when in (-2, -1)] if not topic.error_code else None,
            "offsets": self.plain(fetched.groups[0].topics),
            "group": self.listed(),
            "configs": sorted((each.name, each.value) for each in configs.configs),
            "quotas": self.plain(quotas.entries),
            "users": self.plain(users.results[0].credential_infos),
            "transaction": self.described()[:2],
        }


def errors_in(found: Any) -> Iterator[int]:
    if isinstance(found, list):
        for each in found:
            yield from errors_in(each)
    elif isinstance(found, dict):
        for name, value in found.items():
            if name.endswith("error_code"):
                yield value
            else:
                yield from errors_in(value)


def doubled(values: Values) -> Iterator[tuple[str, Values]]:
    """These values with an element of one of their arrays twice, each with the array's name.

    The second is the same, differs in a field that is no key, or has another partition of the same topic.
    """
    for name, value in values.items():
        for place, changed in _doubled(value):
            yield f"{name}{place}", {**values, name: changed}


def _doubled(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list) and value:
        yield "", [*value, copy.deepcopy(value[0])]
        if (other := _changed(value[0])) != value[0]:
            yield " (changed)", [*value, other]
        if (other := _with_other_partition(value[0])) != value[0]:
            yield " (another partition)", [*value, other]
            yield " (another partition between)", [*value, other, copy.deepcopy(value[0])]
        for number, each in enumerate(value):
            for place, changed in _doubled(each):
                yield place, [*value[:number], changed, *value[number + 1 :]]
    elif isinstance(value, dict):
        for name, each in value.items():
            for place, changed in _doubled(each):
                yield f".{name}{place}", {**value, name: changed}


def _changed(value: Any) -> Any:
    if isinstance(value, list):
        return [_changed(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _CHANGED.get(name, _changed)(each) for name, each in value.items()}


def _with_other_partition(value: Any, *, is_number: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _with_other_partition(each, is_number=name in _OTHER_PARTITION) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_other_partition(each, is_number=is_number) for each in value]
    return 1 - value if is_number and value in (0, 1) else value


# ---- a request of each API ----


def produce(broker: Doubler) -> Iterator[Request]:
    rows = [{"index": 0, "records": batch([b"x"], timestamp=NOW_MS)}]
    for version, topic in ((12, {"name": broker.topic}), (13, {"topic_id": broker.topic_id})):
        data = [{**topic, "partition_data": copy.deepcopy(rows)}]
        yield "Produce", version, {"transactional_id": None, "acks": -1, "timeout_ms": 10_000, "topic_data": data}


def fetch(broker: Doubler) -> Iterator[Request]:
    row = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": 1_000_000}
    for version, topic in ((12, {"topic": broker.topic}), (16, {"topic_id": broker.topic_id})):
        fields = {"cluster_id": None, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1_000_000, "rack_id": ""}
        yield "Fetch", version, {**fields, "topics": [{**topic, "partitions": [row]}], "forgotten_topics_data": []}


def list_offsets(broker: Doubler) -> Iterator[Request]:
    row = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}
    topics = [{"name": broker.topic, "partitions": [row]}]
    for version in (1, 7, 10):
        yield "ListOffsets", version, {"isolation_level": 0, "topics": topics, "timeout_ms": 1000}


def metadata(broker: Doubler) -> Iterator[Request]:
    for version in (1, 9, 12):
        topics = [{"name": broker.topic}]
        yield "Metadata", version, {"topics": topics, "allow_auto_topic_creation": False}
    yield "Metadata", 12, {"topics": [{"name": None, "topic_id": broker.topic_id}], "allow_auto_topic_creation": False}
    yield "Metadata", 12, {"topics": [{"name": "missing"}], "allow_auto_topic_creation": False}


def offset_commit(broker: Doubler) -> Iterator[Request]:
    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    for version, topic in (
        (3, {"name": broker.topic}),
        (9, {"name": broker.topic}),
        (10, {"topic_id": broker.topic_id}),
    ):
        fields = {"group_id": broker.group, "member_id": "", "generation_id_or_member_epoch": -1}
        yield "OffsetCommit", version, {**fields, "topics": [{**topic, "partitions": [row]}]}


def offset_fetch(broker: Doubler) -> Iterator[Request]:
    topics = [{"name": broker.topic, "partition_indexes": [0]}]
    for version in (1, 5, 7):
        yield "OffsetFetch", version, {"group_id": broker.group, "topics": topics, "require_stable": False}
    by_id = [{"topic_id": broker.topic_id, "partition_indexes": [0]}]
    for version, asked in ((8, topics), (9, topics), (10, by_id), (8, None)):
        groups = [{"group_id": broker.group, "topics": asked}]
        yield "OffsetFetch", version, {"groups": groups, "require_stable": False}


def find_coordinator(broker: Doubler) -> Iterator[Request]:
    for kind, key in ((0, broker.group), (1, broker.transactional_id)):
        yield "FindCoordinator", 4, {"key_type": kind, "coordinator_keys": [key]}


def join_group(broker: Doubler) -> Iterator[Request]:
    fields: Values = {"group_id": broker.name, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000}
    fields |= {"member_id": "", "group_instance_id": None, "protocol_type": "consumer", "reason": None}
    protocols = [{"name": each, "metadata": Subscription(topics=("t",)).encode()} for each in ("range", "sticky")]
    yield "JoinGroup", 3, {**fields, "protocols": protocols}


def leave_group(broker: Doubler) -> Iterator[Request]:
    broker.group = broker.name
    broker.ids.clear()
    assert broker.again(lambda: broker.join(instance="i"))[0] == 0
    yield "LeaveGroup", 5, {"group_id": broker.group, "members": [{"member_id": "", "group_instance_id": "i"}]}


def sync_group(broker: Doubler) -> Iterator[Request]:
    broker.group = broker.name
    broker.ids.clear()
    broker.join(version=3)
    assignments = [{"member_id": broker.ids[0], "assignment": b"x"}]
    fields = {"group_id": broker.group, "generation_id": 1, "member_id": broker.ids[0]}
    yield "SyncGroup", 3, {**fields, "assignments": assignments}


def describe_groups(broker: Doubler) -> Iterator[Request]:
    for version in (0, 5, 6):
        yield "DescribeGroups", version, {"groups": [broker.group]}
    yield "DescribeGroups", 6, {"groups": ["missing"]}


def list_groups(broker: Doubler) -> Iterator[Request]:
    yield "ListGroups", 5, {"states_filter": ["Nonsense"], "types_filter": []}
    yield "ListGroups", 5, {"states_filter": ["Dead"], "types_filter": ["classic"]}


def create_topics(broker: Doubler) -> Iterator[Request]:
    row: Values = {"name": broker.name, "num_partitions": 1, "replication_factor": 1}
    row |= {"configs": [{"name": "retention.ms", "value": "5"}], "assignments": []}
    for version in (2, 7):
        yield "CreateTopics", version, {"topics": [row], "timeout_ms": 10_000, "validate_only": True}
    assigned = {**row, "num_partitions": -1, "replication_factor": -1}
    assigned["assignments"] = [{"partition_index": 0, "broker_ids": [1]}]
    for check in (True, False):
        yield "CreateTopics", 7, {"topics": [assigned], "timeout_ms": 10_000, "validate_only": check}
    existing = {**row, "name": broker.topic}
    yield "CreateTopics", 7, {"topics": [existing], "timeout_ms": 10_000, "validate_only": False}


def delete_topics(broker: Doubler) -> Iterator[Request]:
    for version in (1, 5):
        yield "DeleteTopics", version, {"topic_names": [broker.topic], "timeout_ms": 10_000}
    for topic in (
        {"name": broker.topic, "topic_id": UUID(int=0)},
        {"name": None, "topic_id": broker.topic_id},
        {"name": "missing", "topic_id": UUID(int=0)},
        {"name": None, "topic_id": UUID(int=77)},
    ):
        yield "DeleteTopics", 6, {"topics": [topic], "timeout_ms": 10_000}


def delete_records(broker: Doubler) -> Iterator[Request]:
    for name, number in ((broker.topic, 0), (broker.topic, 9), ("missing", 0)):
        topics = [{"name": name, "partitions": [{"partition_index": number, "offset": 1}]}]
        yield "DeleteRecords", 2, {"topics": topics, "timeout_ms": 10_000}


def offset_for_leader_epoch(broker: Doubler) -> Iterator[Request]:
    row = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    for version in (2, 4):
        yield (
            "OffsetForLeaderEpoch",
            version,
            {"replica_id": -1, "topics": [{"topic": broker.topic, "partitions": [row]}]},
        )


def add_partitions_to_txn(broker: Doubler) -> Iterator[Request]:
    who = broker.begin()
    fields = {"transactional_id": broker.transactional_id, "producer_id": who[0], "producer_epoch": who[1]}
    topics = [{"name": broker.topic, "partitions": [0]}]
    older = {f"v3_and_below_{name}": value for name, value in fields.items()}
    for version in (0, 3):
        yield "AddPartitionsToTxn", version, {**older, "v3_and_below_topics": topics}
    missing = [{"name": broker.topic, "partitions": [9]}, {"name": broker.topic, "partitions": [1]}]
    yield "AddPartitionsToTxn", 3, {**older, "v3_and_below_topics": missing}
    for check in (False, True):
        yield "AddPartitionsToTxn", 5, {"transactions": [{**fields, "verify_only": check, "topics": topics}]}


def write_txn_markers(broker: Doubler) -> Iterator[Request]:
    marker = {
        "producer_id": 1_000_000, "producer_epoch": 0, "transaction_result": False, "coordinator_epoch": 0,
        "topics": [{"name": broker.topic, "partition_indexes": [0]}], "transaction_version": 0,
    }  # fmt: skip
    yield "WriteTxnMarkers", 1, {"markers": [marker]}


def txn_offset_commit(broker: Doubler) -> Iterator[Request]:
    who = broker.begin()
    row = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    fields = {"transactional_id": broker.transactional_id, "group_id": broker.group, "producer_id": who[0]}
    fields |= {"producer_epoch": who[1], "generation_id": -1, "member_id": ""}
    yield "TxnOffsetCommit", 5, {**fields, "topics": [{"name": broker.topic, "partitions": [row]}]}


def describe_configs(broker: Doubler) -> Iterator[Request]:
    for kind, name, key in ((2, broker.topic, "retention.ms"), (4, "1", "log.retention.ms"), (32, broker.group, "x")):
        row = {"resource_type": kind, "resource_name": name, "configuration_keys": [key]}
        yield "DescribeConfigs", 4, {"resources": [row]}
    row = {"resource_type": 2, "resource_name": "missing", "configuration_keys": ["retention.ms"]}
    yield "DescribeConfigs", 4, {"resources": [row]}


def alter_configs(broker: Doubler) -> Iterator[Request]:
    for check in (True, False):
        row = {"resource_type": 2, "resource_name": broker.topic, "configs": [{"name": "retention.ms", "value": "77"}]}
        yield "AlterConfigs", 2, {"resources": [row], "validate_only": check}


def incremental_alter_configs(broker: Doubler) -> Iterator[Request]:
    for name, value, operation in (
        ("retention.ms", "77", 0),
        ("cleanup.policy", "compact", 2),
        ("retention.ms", None, 1),
    ):
        configs = [{"name": name, "value": value, "config_operation": operation}]
        row = {"resource_type": 2, "resource_name": broker.topic, "configs": configs}
        yield "IncrementalAlterConfigs", 1, {"resources": [row], "validate_only": False}
    configs = [{"name": "consumer.session.timeout.ms", "value": "46000", "config_operation": 0}]
    row = {"resource_type": 32, "resource_name": broker.group, "configs": configs}
    yield "IncrementalAlterConfigs", 1, {"resources": [row], "validate_only": False}


def describe_log_dirs(broker: Doubler) -> Iterator[Request]:
    yield "DescribeLogDirs", 4, {"topics": [{"topic": broker.topic, "partitions": [0]}]}


def create_partitions(broker: Doubler) -> Iterator[Request]:
    row: Values = {"name": broker.topic, "count": 3, "assignments": None}
    assigned = {**row, "assignments": [{"broker_ids": [1]}]}
    for topics in ([row], [assigned], [{**row, "count": 1}]):
        for check in (True, False):
            yield "CreatePartitions", 3, {"topics": topics, "timeout_ms": 10_000, "validate_only": check}


def delete_groups(broker: Doubler) -> Iterator[Request]:
    for version in (0, 2):
        yield "DeleteGroups", version, {"groups_names": [broker.group]}
    yield "DeleteGroups", 2, {"groups_names": ["missing"]}


def elect_leaders(broker: Doubler) -> Iterator[Request]:
    for kind, number in ((0, 0), (1, 0), (0, 9)):
        topics = [{"topic": broker.topic, "partitions": [number]}]
        yield "ElectLeaders", 2, {"election_type": kind, "topic_partitions": topics, "timeout_ms": 10_000}


def alter_partition_reassignments(broker: Doubler) -> Iterator[Request]:
    for replicas in ([1], None):
        topics = [{"name": broker.topic, "partitions": [{"partition_index": 0, "replicas": replicas}]}]
        yield "AlterPartitionReassignments", 1, {"timeout_ms": 10_000, "topics": topics}


def list_partition_reassignments(broker: Doubler) -> Iterator[Request]:
    topics = [{"name": broker.topic, "partition_indexes": [0]}]
    yield "ListPartitionReassignments", 0, {"timeout_ms": 10_000, "topics": topics}


def offset_delete(broker: Doubler) -> Iterator[Request]:
    for number in (0, 9):
        topics = [{"name": broker.topic, "partitions": [{"partition_index": number}]}]
        yield "OffsetDelete", 0, {"group_id": broker.group, "topics": topics}


def describe_client_quotas(broker: Doubler) -> Iterator[Request]:
    component = {"entity_type": "user", "match_type": 0, "match": broker.name}
    yield "DescribeClientQuotas", 1, {"components": [component], "strict": False}


def alter_client_quotas(broker: Doubler) -> Iterator[Request]:
    for key, value in (("producer_byte_rate", 5.0), ("nonsense", 5.0)):
        entry = {
            "entity": [{"entity_type": "user", "entity_name": broker.name}],
            "ops": [{"key": key, "value": value, "remove": False}],
        }
        for check in (True, False):
            yield "AlterClientQuotas", 1, {"entries": [entry], "validate_only": check}


def describe_user_scram_credentials(broker: Doubler) -> Iterator[Request]:
    yield "DescribeUserScramCredentials", 0, {"users": [{"name": broker.name}]}


def alter_user_scram_credentials(broker: Doubler) -> Iterator[Request]:
    upsertion = {"name": broker.name, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
    yield "AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [upsertion]}
    yield "AlterUserScramCredentials", 0, {"deletions": [{"name": broker.name, "mechanism": 1}], "upsertions": []}
    deletion = {"name": broker.name, "mechanism": 2}
    yield "AlterUserScramCredentials", 0, {"deletions": [deletion], "upsertions": [upsertion]}


def describe_quorum(broker: Doubler) -> Iterator[Request]:
    topics = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    yield "DescribeQuorum", 0, {"topics": topics}


def describe_producers(broker: Doubler) -> Iterator[Request]:
    for number in (0, 9):
        yield "DescribeProducers", 0, {"topics": [{"name": broker.topic, "partition_indexes": [number]}]}


def describe_transactions(broker: Doubler) -> Iterator[Request]:
    broker.begin()
    for name in (broker.transactional_id, "missing"):
        yield "DescribeTransactions", 0, {"transactional_ids": [name]}


def list_transactions(broker: Doubler) -> Iterator[Request]:
    yield "ListTransactions", 1, {"state_filters": ["Nonsense"], "producer_id_filters": [1_000_000]}


def consumer_group_heartbeat(broker: Doubler) -> Iterator[Request]:
    fields = {"group_id": broker.name, "member_id": str(uuid4()), "member_epoch": 0, "rebalance_timeout_ms": 30_000}
    yield "ConsumerGroupHeartbeat", 1, {**fields, "subscribed_topic_names": [broker.topic], "topic_partitions": []}


def consumer_group_describe(broker: Doubler) -> Iterator[Request]:
    for name in (broker.group, "missing"):
        yield "ConsumerGroupDescribe", 1, {"group_ids": [name], "include_authorized_operations": False}


def list_config_resources(broker: Doubler) -> Iterator[Request]:
    yield "ListConfigResources", 1, {"resource_types": [8]}


def describe_topic_partitions(broker: Doubler) -> Iterator[Request]:
    for name in (broker.topic, "missing"):
        yield (
            "DescribeTopicPartitions",
            0,
            {"topics": [{"name": name}], "response_partition_limit": 100, "cursor": None},
        )


def share_group_heartbeat(broker: Doubler) -> Iterator[Request]:
    fields = {"group_id": broker.name, "member_id": str(uuid4()), "member_epoch": 0, "rack_id": None}
    yield "ShareGroupHeartbeat", 1, {**fields, "subscribed_topic_names": ["missing"]}


def share_group_describe(broker: Doubler) -> Iterator[Request]:
    for name in (broker.group, "missing"):
        yield "ShareGroupDescribe", 1, {"group_ids": [name], "include_authorized_operations": False}


def streams_group_describe(broker: Doubler) -> Iterator[Request]:
    for name in (broker.group, "missing"):
        yield "StreamsGroupDescribe", 0, {"group_ids": [name], "include_authorized_operations": False}


def describe_share_group_offsets(broker: Doubler) -> Iterator[Request]:
    for group in (broker.group, "missing"):
        asked = {"group_id": group, "topics": [{"topic_name": broker.topic, "partitions": [0]}]}
        yield "DescribeShareGroupOffsets", 1, {"groups": [asked]}


def alter_share_group_offsets(broker: Doubler) -> Iterator[Request]:
    topics = [{"topic_name": broker.topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    yield "AlterShareGroupOffsets", 0, {"group_id": broker.name, "topics": topics}


def delete_share_group_offsets(broker: Doubler) -> Iterator[Request]:
    topics = [{"topic_name": broker.topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    broker.ask("AlterShareGroupOffsets", 0, group_id=broker.name, topics=topics)
    yield "DeleteShareGroupOffsets", 0, {"group_id": broker.name, "topics": [{"topic_name": broker.topic}]}


def create_acls(broker: Doubler) -> Iterator[Request]:
    row = {"resource_type": 2, "resource_name": broker.name, "resource_pattern_type": 3, "principal": "User:x"}
    yield "CreateAcls", 3, {"creations": [{**row, "host": "*", "operation": 3, "permission_type": 3}]}


def delete_acls(broker: Doubler) -> Iterator[Request]:
    row = {"resource_type_filter": 2, "resource_name_filter": broker.name, "pattern_type_filter": 3}
    row |= {"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1}
    yield "DeleteAcls", 3, {"filters": [row]}


EVERY: Mapping[str, Callable[[Doubler], Iterator[Request]]] = {
    each.__name__: each
    for each in (
        produce, fetch, list_offsets, metadata, offset_commit, offset_fetch, find_coordinator, join_group,
        leave_group, sync_group, describe_groups, list_groups, create_topics, delete_topics, delete_records,
        offset_for_leader_epoch, add_partitions_to_txn, write_txn_markers, txn_offset_commit, create_acls, delete_acls,
        describe_configs, alter_configs, describe_log_dirs, create_partitions, delete_groups, elect_leaders,
        incremental_alter_configs, alter_partition_reassignments, list_partition_reassignments, offset_delete,
        describe_client_quotas, alter_client_quotas, describe_user_scram_credentials, alter_user_scram_credentials,
        describe_quorum, describe_producers, describe_transactions, list_transactions, consumer_group_heartbeat,
        consumer_group_describe, list_config_resources, describe_topic_partitions, share_group_heartbeat,
        share_group_describe, streams_group_describe, describe_share_group_offsets, alter_share_group_offsets,
        delete_share_group_offsets,
    )
}  # fmt: skip
