"""Requests of one client, each about something that ACLs may grant and something beside it, for comparing two brokers.

`REQUESTS` and `GROUP_REQUESTS` have a request for every API that an authorizer guards. ``$t`` is a name of the scene:
ACLs are about topic ``t``, group ``g``, group ``c`` of KIP-848, share groups ``s`` (with a member) and ``e``, streams
group ``k`` and transactional id ``x``, not about the others. `reduced` leaves of an answer what an authorizer decides:
which rows there are, their errors, and what the client may do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from client_messages import client_request
from record_batches import batch


@dataclass(frozen=True)
class Scene:
    """The names that requests are about."""

    prefix: str
    topic_ids: Mapping[str, UUID]
    """Of the topics ``t`` and ``o``, which are there."""

    def name(self, short: str) -> str:
        return f"{self.prefix}{short}"

    def named(self, value: Any) -> Any:
        """A value of a request with the names and ids of this scene in it."""
        match value:
            case dict():
                return {key: self.named(each) for key, each in value.items()}
            case list():
                return [self.named(each) for each in value]
            case str() if value.startswith("$"):
                return self.name(value[1:])
            case TopicId():
                return self.topic_ids.get(value.topic, UUID(int=7))
        return value


@dataclass(frozen=True)
class TopicId:
    """The id of a scene's topic, or one that no topic has."""

    topic: str


@dataclass(frozen=True)
class Asked:
    """One request."""

    api: str
    name: str
    version: int
    values: dict[str, Any]
    only_errors: bool = False
    """Whether rows without an error do not count: Kafka may leave them out."""

    def made(self, scene: Scene) -> Any:
        return client_request(self.api, self.version, **scene.named(self.values))


_KEPT = {
    "authorized_operations", "topic_authorized_operations", "group_id", "group", "name", "topic", "topic_name", "key",
    "partition", "partition_index", "partition_id", "index", "resource_name", "resource_type", "transactional_id",
    "principal", "host", "operation", "permission_type", "pattern_type", "resource_pattern_type",
}  # fmt: skip
_COUNTED = {"configs", "members"}
_LEFT_OUT = {
    "brokers", "nodes", "node_endpoints", "log_dir", "entries", "config_resources", "transaction_states_all",
}  # fmt: skip


def reduced(struct: Any, version: int, scene: Scene) -> Any:
    """What an authorizer decides about an answer."""
    values: dict[str, Any] = {}
    for field in struct._struct.fields.values():
        if not field.for_version_q(version) or field.name in _LEFT_OUT:
            continue
        value = getattr(struct, field.name)
        if field.is_struct_array():
            if field.name in _COUNTED:
                values[field.name] = bool(value)
                continue
            rows = [reduced(each, version, scene) for each in value or ()]
            values[field.name] = sorted((row for row in rows if _is_ours(row, scene)), key=repr)
        elif field.name.endswith("error_code") and not (field.tag is not None and value is None):
            values[field.name] = int(value or 0)
        elif field.name == "topic_id":
            values[field.name] = bool(value)
        elif field.name in _KEPT:
            values[field.name] = sorted(value) if isinstance(value, set) else value
    return values


def errors_of(values: dict[str, Any]) -> Any:
    """Of a reduced answer its own error, and those of partitions."""
    rows = [row["error_code"] for topic in values["responses"] for row in topic["partitions"]]
    return values["error_code"], sorted(error for error in rows if error)


def _is_ours(row: Any, scene: Scene) -> bool:
    """Whether a row is of this scene: lists of everything have those of other tests too."""
    names = [row.get(key) for key in ("name", "topic", "group_id", "group", "transactional_id")]
    named = [name for name in names if name]
    return not named or any(name.startswith(scene.prefix) for name in named)


def asked(name: str, versions: Sequence[int], *, only_errors: bool = False, **values: Any) -> list[Asked]:
    """A request in each of these versions, of the API that its name begins with."""
    return [Asked(name.partition(" ")[0], f"{name}-v{version}", version, values, only_errors) for version in versions]


def topics(key: str, names: str = "tom", **rest: Any) -> list[dict[str, Any]]:
    """A row for each of these topics, by name: one that ACLs are about, another, and one that is missing."""
    return [{key: f"${each}", **rest} for each in names]


def by_id(**rest: Any) -> list[dict[str, Any]]:
    """A row for each of the topics that are there and for one that is not, by id."""
    return [{"topic_id": TopicId(each), **rest} for each in ("t", "o", "unknown")]


def acl_filter(name: str | None = None, principal: str | None = None) -> dict[str, Any]:
    return {
        "resource_type_filter": 1, "resource_name_filter": name, "pattern_type_filter": 1,
        "principal_filter": principal, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip


def streams_beat(group_id: str, member_id: str, epoch: int, *names: str) -> dict[str, Any]:
    """The values of a streams group's heartbeat whose topology reads these topics."""
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": list(names)}]}
    return {
        "group_id": group_id, "member_id": member_id, "member_epoch": epoch, "endpoint_information_epoch": -1,
        "rebalance_timeout_ms": 300_000, "topology": topology, "active_tasks": [], "standby_tasks": [],
        "warmup_tasks": [], "process_id": "p",
    }  # fmt: skip


NO_PRODUCER_ID = 1 << 62
"""No broker gives this producer id. With one that it gives, answers depend on how many it has given before."""
RECORDS = [{"index": 0, "records": batch([b"x"])}]
TRANSACTIONAL = [{"index": 0, "records": batch([b"x"], producer=(NO_PRODUCER_ID, 0, 0), transactional=True)}]
FETCHED = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
COMMITTED = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": None}]
PRODUCER = {"transactional_id": "$x", "producer_id": NO_PRODUCER_ID, "producer_epoch": 0}
SHARE_FETCH = {
    "group_id": "$s", "share_session_epoch": 0, "max_wait_ms": 0, "max_bytes": 1000, "max_records": 1, "batch_size": 1,
}  # fmt: skip
BEFORE_V4 = {f"v3_and_below_{name}": value for name, value in PRODUCER.items()}
CHANGED = [
    (2, "$t", "retention.ms", "5000"), (2, "$o", "retention.ms", "5000"),
    (32, "$g", "consumer.session.timeout.ms", "50000"), (4, "", "message.max.bytes", "9000000"),
    (16, "m", "interval.ms", "5000"),
]  # fmt: skip

REQUESTS = [
    *asked(
        "Metadata of all",
        [1, 10, 13],
        topics=None,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    ),
    *asked(
        "Metadata",
        [1, 9, 13],
        topics=topics("name", "to"),
        allow_auto_topic_creation=True,
        include_topic_authorized_operations=True,
    ),
    *asked("Metadata by id", [12, 13], topics=by_id(name=None)),
    *asked("Metadata of a missing topic", [13], topics=topics("name", "m"), allow_auto_topic_creation=False),
    *asked("Produce", [3, 9, 12], acks=-1, timeout_ms=9000, topic_data=topics("name", partition_data=RECORDS)),
    *asked("Produce by id", [13], acks=-1, timeout_ms=9000, topic_data=by_id(partition_data=RECORDS)),
    *asked(
        "Produce without acks", [9], acks=0, timeout_ms=9000, topic_data=topics("name", "o", partition_data=RECORDS)
    ),
    *asked(
        "Produce in a transaction",
        [9],
        acks=-1,
        timeout_ms=9000,
        transactional_id="$x",
        topic_data=topics("name", "o", partition_data=TRANSACTIONAL),
    ),
    *asked("Fetch", [4, 12], max_wait_ms=0, max_bytes=1000, topics=topics("topic", partitions=FETCHED)),
    *asked("Fetch by id", [13, 17], max_wait_ms=0, max_bytes=1000, topics=by_id(partitions=FETCHED)),
    *asked(
        "ListOffsets",
        [1, 10],
        isolation_level=0,
        timeout_ms=9000,
        topics=topics("name", partitions=[{"partition_index": 0, "timestamp": -1}]),
    ),
    *asked(
        "OffsetForLeaderEpoch",
        [2, 4],
        replica_id=-1,
        topics=topics("topic", partitions=[{"partition": 0, "leader_epoch": 0}]),
    ),
    *asked("OffsetCommit", [2, 9], group_id="$g", member_id="", topics=topics("name", partitions=COMMITTED)),
    *asked("OffsetCommit by id", [10], group_id="$g", member_id="", topics=by_id(partitions=COMMITTED)),
    *asked("OffsetFetch", [1, 2, 7], group_id="$g", topics=topics("name", partition_indexes=[0])),
    *asked("OffsetFetch of all", [7], group_id="$g", topics=None),
    *asked(
        "OffsetFetch of groups",
        [8, 9],
        groups=[{"group_id": each, "topics": topics("name", partition_indexes=[0])} for each in ("$g", "$h")],
    ),
    *asked(
        "OffsetFetch of groups and all",
        [8, 10],
        groups=[{"group_id": "$g", "topics": None}, {"group_id": "$h", "topics": None}],
    ),
    *asked("OffsetFetch by id", [10], groups=[{"group_id": "$g", "topics": by_id(partition_indexes=[0])}]),
    *asked("OffsetDelete", [0], group_id="$g", topics=topics("name", partitions=[{"partition_index": 0}])),
    *asked("FindCoordinator", [2, 6], key="$g", key_type=0, coordinator_keys=["$g", "$z"]),
    *asked("FindCoordinator of a transaction", [2, 6], key="$x", key_type=1, coordinator_keys=["$x", "$z"]),
    *asked("FindCoordinator of a malformed share key", [6], key="$g", key_type=2, coordinator_keys=["$g", "$z"]),
    *asked(
        "JoinGroup",
        [2, 9],
        group_id="$g",
        session_timeout_ms=9000,
        rebalance_timeout_ms=9000,
        member_id="nobody",
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    ),
    *asked(
        "SyncGroup", [5], group_id="$g", generation_id=1, member_id="m", protocol_type="consumer", protocol_name="range"
    ),
    *asked("Heartbeat", [0, 4], group_id="$g", generation_id=1, member_id="m"),
    *asked("LeaveGroup", [2, 5], group_id="$g", member_id="m", members=[{"member_id": "m"}]),
    *asked(
        "ConsumerGroupHeartbeat",
        [0, 1],
        group_id="$g",
        member_id="m",
        member_epoch=5,
        rebalance_timeout_ms=9000,
        subscribed_topic_names=["$t"],
    ),
    *asked(
        "ConsumerGroupHeartbeat of two topics",
        [1],
        group_id="$g",
        member_id="m",
        member_epoch=5,
        rebalance_timeout_ms=9000,
        subscribed_topic_names=["$t", "$o"],
    ),
    *asked("ConsumerGroupDescribe", [1], group_ids=["$c", "$z"], include_authorized_operations=True),
    *asked("DescribeGroups", [3, 6], groups=["$g", "$h"], include_authorized_operations=True),
    *asked("ListGroups", [5]),
    *asked("InitProducerId", [4], transactional_id=None, transaction_timeout_ms=9000),
    *asked("InitProducerId of a transaction", [4], transactional_id="$x", transaction_timeout_ms=9000),
    *asked("AddPartitionsToTxn", [3], **BEFORE_V4, v3_and_below_topics=topics("name", partitions=[0])),
    *asked(
        "AddPartitionsToTxn of one topic", [3], **BEFORE_V4, v3_and_below_topics=topics("name", "t", partitions=[0])
    ),
    *asked(
        "AddPartitionsToTxn of brokers",
        [5],
        transactions=[{**PRODUCER, "verify_only": False, "topics": topics("name", "t", partitions=[0])}],
    ),
    *asked("AddOffsetsToTxn", [3], **PRODUCER, group_id="$g"),
    *asked("EndTxn", [3], **PRODUCER, committed=True),
    *asked(
        "TxnOffsetCommit", [3], **PRODUCER, group_id="$g", member_id="", topics=topics("name", partitions=COMMITTED)
    ),
    *asked("WriteTxnMarkers", [1]),
    *asked("DescribeProducers", [0], topics=topics("name", partition_indexes=[0])),
    *asked("DescribeTransactions", [0], transactional_ids=["$x", "$y"]),
    *asked("ListTransactions", [0]),
    *asked("DescribeTopicPartitions", [0], topics=topics("name"), response_partition_limit=100),
    *asked("DescribeTopicPartitions of all", [0], response_partition_limit=2000),
    *asked(
        "CreateTopics",
        [2, 5, 7],
        topics=topics("name", "tnq", num_partitions=1, replication_factor=1),
        timeout_ms=9000,
        validate_only=True,
    ),
    *asked("CreatePartitions", [3], topics=topics("name", count=2), timeout_ms=9000, validate_only=True),
    *asked(
        "DescribeConfigs",
        [4],
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for kind, name in ((2, "$t"), (2, "$o"), (4, "1"), (32, "$g"), (16, "m"))
        ],
    ),
    *asked(
        "IncrementalAlterConfigs",
        [1],
        validate_only=True,
        resources=[
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": config, "value": value, "config_operation": 0}],
            }
            for kind, name, config, value in CHANGED
        ],
    ),
    *asked(
        "AlterConfigs",
        [2],
        validate_only=True,
        resources=[
            {"resource_type": 2, "resource_name": each, "configs": [{"name": "retention.ms", "value": "5000"}]}
            for each in ("$t", "$o")
        ],
    ),
    *asked("ListConfigResources", [1]),
    *asked("DescribeCluster", [1], include_cluster_authorized_operations=True, endpoint_type=1),
    *asked("DescribeLogDirs", [1, 4], topics=topics("topic", "to", partitions=[0])),
    *asked("UnregisterBroker", [0], broker_id=9),
    *asked("CreateDelegationToken", [1, 3], owner_principal_type=None, owner_principal_name=None, max_lifetime_ms=-1),
    *asked("RenewDelegationToken", [1, 2], hmac=b"x", renew_period_ms=-1),
    *asked("ExpireDelegationToken", [1, 2], hmac=b"x", expiry_time_period_ms=-1),
    *asked("DescribeDelegationToken", [1, 3], owners=None),
    *asked("DescribeQuorum", [1]),
    *asked("DescribeClientQuotas", [1], strict=False),
    *asked(
        "AlterClientQuotas",
        [1],
        entries=[
            {
                "entity": [{"entity_type": "user", "entity_name": "$u"}],
                "ops": [{"key": "producer_byte_rate", "value": 5000.0, "remove": False}],
            }
        ],
        validate_only=True,
    ),
    *asked("DescribeUserScramCredentials", [0], users=topics("name", "u")),
    *asked("AlterUserScramCredentials", [0], deletions=topics("name", "u", mechanism=1)),
    *asked(
        "ElectLeaders", [1, 2], election_type=0, topic_partitions=topics("topic", "t", partitions=[0]), timeout_ms=9000
    ),
    *asked(
        "AlterPartitionReassignments",
        [0],
        timeout_ms=9000,
        topics=topics("name", "t", partitions=[{"partition_index": 0}]),
    ),
    *asked("ListPartitionReassignments", [0], timeout_ms=9000),
    *asked("DescribeAcls", [3], **acl_filter("$t")),
    *asked("CreateAcls", [3]),
    *asked("DeleteAcls", [3], filters=[acl_filter("$nothing")]),
    # What changes something comes last.
    *asked(
        "DeleteRecords", [2], topics=topics("name", partitions=[{"partition_index": 0, "offset": 0}]), timeout_ms=9000
    ),
    *asked("DeleteGroups", [2], groups_names=["$g", "$h", "$z"]),
    *asked("DeleteTopics", [5], topic_names=["$o", "$m"], timeout_ms=9000),
    *asked("DeleteTopics by id", [6], topics=by_id(), timeout_ms=9000),
]

GROUP_REQUESTS = [
    *asked(
        "ShareGroupHeartbeat of t", [1], group_id="$s", member_id="x", member_epoch=5, subscribed_topic_names=["$t"]
    ),
    *asked(
        "ShareGroupHeartbeat of to",
        [1],
        group_id="$s",
        member_id="x",
        member_epoch=5,
        subscribed_topic_names=["$t", "$o"],
    ),
    *asked("ShareGroupDescribe", [1], group_ids=["$s", "$z"], include_authorized_operations=True),
    # No topics: where Kafka has nothing to give yet, it may answer with a row or without one.
    *asked(
        "ShareFetch",
        [1],
        **SHARE_FETCH,
        member_id="AAAAAAAAAAAAAAAAAAAAAQ",
        min_bytes=0,
    ),
    *asked(
        "ShareFetch of topics",
        [1, 2],
        only_errors=True,
        **SHARE_FETCH,
        member_id="AAAAAAAAAAAAAAAAAAAAAg",
        min_bytes=1,
        topics=by_id(partitions=[{"partition_index": 0}])[:2],
    ),
    *asked("ShareAcknowledge", [1], group_id="$s", member_id="x", share_session_epoch=1),
    *asked(
        "DescribeShareGroupOffsets",
        [0, 1],
        groups=[{"group_id": each, "topics": topics("topic_name", partitions=[0])} for each in ("$s", "$e")],
    ),
    *asked(
        "DescribeShareGroupOffsets of all",
        [1],
        groups=[{"group_id": "$s", "topics": None}, {"group_id": "$e", "topics": None}],
    ),
    *(
        request
        for names in ("t", "to", "m")
        for request in asked(
            f"StreamsGroupHeartbeat of {names}", [0], **streams_beat("$k", "x", 5, *(f"${each}" for each in names))
        )
    ),
    *asked("StreamsGroupDescribe", [0], group_ids=["$k", "$z"], include_authorized_operations=True),
    # What changes something comes last.
    *asked(
        "AlterShareGroupOffsets",
        [0],
        group_id="$e",
        topics=topics("topic_name", partitions=[{"partition_index": 0, "start_offset": 0}]),
    ),
    *asked("DeleteShareGroupOffsets", [0], group_id="$e", topics=topics("topic_name")),
]
"""Of share groups (KIP-932) and streams groups (KIP-1071)."""
