"""Requests of one client, each about something that ACLs may grant and something beside it, for comparing two brokers.

`REQUESTS` has a request for every API that an authorizer guards, but for those of share groups and streams groups,
which `group_access_requests` has. `reduced` leaves of an answer what an authorizer
decides: which rows there are, their errors, and what the client may do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import client_messages
from kafka.protocol import admin, consumer, metadata, producer
from record_batches import batch


@dataclass(frozen=True)
class Scene:
    """The names that requests are about: ``t``, ``g``, ``c`` and ``x`` are what ACLs are about, the others not."""

    prefix: str
    topic_ids: Mapping[str, UUID]
    """Of the topics ``t`` and ``o``, which are there."""

    def name(self, short: str) -> str:
        return f"{self.prefix}{short}"


@dataclass(frozen=True)
class Asked:
    """One request."""

    name: str
    request: Any
    response: Any
    version: int
    body: Callable[[Scene], dict[str, Any]]
    only_errors: bool = False
    """Whether rows without an error do not count: Kafka may leave them out."""

    def made(self, scene: Scene) -> Any:
        return built(self.request, self.version, self.body(scene))


REQUESTS: list[Asked] = []


def built(schema: Any, version: int, values: Mapping[str, Any]) -> Any:
    """A request of these values, rows being dicts; what is not given has its default."""
    fields: dict[str, Any] = {}
    for field in schema._struct.fields.values():
        if not field.for_version_q(version):
            continue
        if field.name not in values:
            if field.is_struct_array():
                fields[field.name] = []
            continue
        value = values[field.name]
        if field.is_struct_array() and value is not None:
            value = [built(field.data_class, version, each) for each in value]
        fields[field.name] = value
    unknown = set(values) - {field.name for field in schema._struct.fields.values()}
    assert not unknown, f"{schema.__name__} has no {unknown}"
    return schema(version=version, **fields)


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


def add(
    name: str, request: Any, response: Any, *versions: int, to: list[Asked] = REQUESTS, only_errors: bool = False
) -> Callable[[Any], Any]:
    """Decorator of what makes a request's body from the scene: it is asked in all of these versions."""

    def adding(body: Callable[[Scene], dict[str, Any]]) -> Any:
        to.extend(Asked(f"{name}-v{version}", request, response, version, body, only_errors) for version in versions)
        return body

    return adding


def both(scene: Scene, *fields: Any, names: str = "tom") -> list[dict[str, Any]]:
    """A row for each of these topics, by name: one that ACLs are about, another, and one that is missing."""
    key, rest = fields[0], fields[1] if len(fields) > 1 else {}
    return [{key: scene.name(each), **rest} for each in names]


def by_id(scene: Scene, rest: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each of the topics that are there and for one that is not, by id."""
    unknown = UUID(int=7)
    return [{"topic_id": each, **rest} for each in (*scene.topic_ids.values(), unknown)]


P = producer
A = admin
C = consumer
D = client_messages


@add("Metadata of all", metadata.MetadataRequest, metadata.MetadataResponse, 1, 10, 13)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": None, "include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}


@add("Metadata", metadata.MetadataRequest, metadata.MetadataResponse, 1, 9, 13)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "topics": both(scene, "name", {"topic_id": None}, names="to"), "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": True,
    }  # fmt: skip


@add("Metadata by id", metadata.MetadataRequest, metadata.MetadataResponse, 12, 13)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": by_id(scene, {"name": None})}


@add("Metadata of a missing topic", metadata.MetadataRequest, metadata.MetadataResponse, 13)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": both(scene, "name", {"topic_id": None}, names="m"), "allow_auto_topic_creation": False}


@add("Produce", P.ProduceRequest, P.ProduceResponse, 3, 9, 12)
def _(scene: Scene) -> dict[str, Any]:
    data = [{"index": 0, "records": batch([b"x"])}]
    return {
        "acks": -1, "timeout_ms": 9000, "transactional_id": None,
        "topic_data": both(scene, "name", {"partition_data": data}),
    }  # fmt: skip


@add("Produce by id", P.ProduceRequest, P.ProduceResponse, 13)
def _(scene: Scene) -> dict[str, Any]:
    data = [{"index": 0, "records": batch([b"x"])}]
    return {
        "acks": -1, "timeout_ms": 9000, "transactional_id": None,
        "topic_data": by_id(scene, {"partition_data": data}),
    }  # fmt: skip


@add("Produce without acks", P.ProduceRequest, P.ProduceResponse, 9)
def _(scene: Scene) -> dict[str, Any]:
    data = [{"index": 0, "records": batch([b"x"])}]
    topics = both(scene, "name", {"partition_data": data}, names="o")
    return {"acks": 0, "timeout_ms": 9000, "transactional_id": None, "topic_data": topics}


@add("Produce in a transaction", P.ProduceRequest, P.ProduceResponse, 9)
def _(scene: Scene) -> dict[str, Any]:
    data = [{"index": 0, "records": batch([b"x"], producer=(1, 0, 0), transactional=True)}]
    topics = both(scene, "name", {"partition_data": data}, names="o")
    return {"acks": -1, "timeout_ms": 9000, "transactional_id": scene.name("x"), "topic_data": topics}


_FETCHED = {
    "partitions": [{"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
                    "log_start_offset": -1, "partition_max_bytes": 1000}],
}  # fmt: skip


@add("Fetch", C.FetchRequest, C.FetchResponse, 4, 12)
def _(scene: Scene) -> dict[str, Any]:
    return _fetch(both(scene, "topic", _FETCHED))


@add("Fetch by id", C.FetchRequest, C.FetchResponse, 13, 17)
def _(scene: Scene) -> dict[str, Any]:
    return _fetch(by_id(scene, _FETCHED))


def _fetch(topics: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "isolation_level": 0, "session_id": 0,
        "session_epoch": -1, "topics": topics, "forgotten_topics_data": [], "rack_id": "",
    }  # fmt: skip


@add("ListOffsets", C.ListOffsetsRequest, C.ListOffsetsResponse, 1, 10)
def _(scene: Scene) -> dict[str, Any]:
    row = {"partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]}
    return {"replica_id": -1, "isolation_level": 0, "timeout_ms": 9000, "topics": both(scene, "name", row)}


@add("OffsetForLeaderEpoch", C.OffsetForLeaderEpochRequest, C.OffsetForLeaderEpochResponse, 2, 4)
def _(scene: Scene) -> dict[str, Any]:
    row = {"partitions": [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]}
    return {"replica_id": -1, "topics": both(scene, "topic", row)}


_COMMITTED = {
    "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1,
                    "committed_metadata": None}],
}  # fmt: skip


@add("OffsetCommit", C.OffsetCommitRequest, C.OffsetCommitResponse, 2, 9)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "group_id": scene.name("g"), "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None,
        "topics": both(scene, "name", _COMMITTED),
    }  # fmt: skip


@add("OffsetCommit by id", C.OffsetCommitRequest, C.OffsetCommitResponse, 10)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "group_id": scene.name("g"), "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None,
        "topics": by_id(scene, _COMMITTED),
    }  # fmt: skip


@add("OffsetFetch", C.OffsetFetchRequest, C.OffsetFetchResponse, 1, 2, 7)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("g"), "topics": both(scene, "name", {"partition_indexes": [0]})}


@add("OffsetFetch of all", C.OffsetFetchRequest, C.OffsetFetchResponse, 7)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("g"), "topics": None}


@add("OffsetFetch of groups", C.OffsetFetchRequest, C.OffsetFetchResponse, 8, 9)
def _(scene: Scene) -> dict[str, Any]:
    topics = both(scene, "name", {"partition_indexes": [0]})
    return {"groups": [
        {"group_id": scene.name(each), "member_id": None, "member_epoch": -1, "topics": wanted}
        for each, wanted in (("g", topics), ("h", topics))
    ]}  # fmt: skip


@add("OffsetFetch of groups and all", C.OffsetFetchRequest, C.OffsetFetchResponse, 8, 10)
def _(scene: Scene) -> dict[str, Any]:
    return {"groups": [{"group_id": scene.name(each), "member_id": None, "member_epoch": -1, "topics": None}
                       for each in "gh"]}  # fmt: skip


@add("OffsetFetch by id", C.OffsetFetchRequest, C.OffsetFetchResponse, 10)
def _(scene: Scene) -> dict[str, Any]:
    topics = by_id(scene, {"partition_indexes": [0]})
    return {"groups": [{"group_id": scene.name("g"), "member_id": None, "member_epoch": -1, "topics": topics}]}


@add("OffsetDelete", C.OffsetDeleteRequest, C.OffsetDeleteResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("g"), "topics": both(scene, "name", {"partitions": [{"partition_index": 0}]})}


for _name, _key, _versions in (
    ("FindCoordinator", 0, (2, 6)),
    ("FindCoordinator of a transaction", 1, (2, 6)),
    ("FindCoordinator of a malformed share key", 2, (6,)),
):
    _short = "gxg"[_key]
    _request, _response = metadata.FindCoordinatorRequest, metadata.FindCoordinatorResponse
    add(_name, _request, _response, *_versions)(
        lambda scene, key=_key, short=_short: {
            "key": scene.name(short),
            "key_type": key,
            "coordinator_keys": [scene.name(short), scene.name("z")],
        }
    )


@add("JoinGroup", C.JoinGroupRequest, C.JoinGroupResponse, 2, 9)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "group_id": scene.name("g"), "session_timeout_ms": 9000, "rebalance_timeout_ms": 9000, "member_id": "nobody",
        "group_instance_id": None, "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}],
        "reason": None,
    }  # fmt: skip


@add("SyncGroup", C.SyncGroupRequest, C.SyncGroupResponse, 5)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "group_id": scene.name("g"), "generation_id": 1, "member_id": "m", "group_instance_id": None,
        "protocol_type": "consumer", "protocol_name": "range",
    }  # fmt: skip


@add("Heartbeat", C.HeartbeatRequest, C.HeartbeatResponse, 0, 4)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("g"), "generation_id": 1, "member_id": "m", "group_instance_id": None}


@add("LeaveGroup", C.LeaveGroupRequest, C.LeaveGroupResponse, 2, 5)
def _(scene: Scene) -> dict[str, Any]:
    members = [{"member_id": "m", "group_instance_id": None, "reason": None}]
    return {"group_id": scene.name("g"), "member_id": "m", "members": members}


@add("ConsumerGroupHeartbeat", client_messages.ConsumerGroupHeartbeatRequest,
      client_messages.ConsumerGroupHeartbeatResponse, 0, 1)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    return _beat(scene, ["t"])


@add("ConsumerGroupHeartbeat of two topics", client_messages.ConsumerGroupHeartbeatRequest,
      client_messages.ConsumerGroupHeartbeatResponse, 1)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    return _beat(scene, ["t", "o"])


def _beat(scene: Scene, names: list[str]) -> dict[str, Any]:
    return {
        "group_id": scene.name("g"), "member_id": "m", "member_epoch": 5, "instance_id": None, "rack_id": None,
        "rebalance_timeout_ms": 9000, "subscribed_topic_names": [scene.name(each) for each in names],
        "subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": None,
    }  # fmt: skip


@add("ConsumerGroupDescribe", client_messages.ConsumerGroupDescribeRequest,
      client_messages.ConsumerGroupDescribeResponse, 1)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    return {"group_ids": [scene.name("c"), scene.name("z")], "include_authorized_operations": True}


@add("DescribeGroups", A.DescribeGroupsRequest, A.DescribeGroupsResponse, 3, 6)
def _(scene: Scene) -> dict[str, Any]:
    return {"groups": [scene.name("g"), scene.name("h")], "include_authorized_operations": True}


@add("ListGroups", A.ListGroupsRequest, A.ListGroupsResponse, 5)
def _(scene: Scene) -> dict[str, Any]:
    return {"states_filter": [], "types_filter": []}


@add("InitProducerId", P.InitProducerIdRequest, P.InitProducerIdResponse, 4)
def _(scene: Scene) -> dict[str, Any]:
    return {"transactional_id": None, "transaction_timeout_ms": 9000, "producer_id": -1, "producer_epoch": -1}


@add("InitProducerId of a transaction", P.InitProducerIdRequest, P.InitProducerIdResponse, 4)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "transactional_id": scene.name("x"), "transaction_timeout_ms": 9000, "producer_id": -1, "producer_epoch": -1,
    }  # fmt: skip


@add("AddPartitionsToTxn", P.AddPartitionsToTxnRequest, P.AddPartitionsToTxnResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "v3_and_below_transactional_id": scene.name("x"), "v3_and_below_producer_id": 1,
        "v3_and_below_producer_epoch": 0, "v3_and_below_topics": both(scene, "name", {"partitions": [0]}),
    }  # fmt: skip


@add("AddPartitionsToTxn of one topic", P.AddPartitionsToTxnRequest, P.AddPartitionsToTxnResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "v3_and_below_transactional_id": scene.name("x"), "v3_and_below_producer_id": 1,
        "v3_and_below_producer_epoch": 0, "v3_and_below_topics": both(scene, "name", {"partitions": [0]}, names="t"),
    }  # fmt: skip


@add("AddPartitionsToTxn of brokers", P.AddPartitionsToTxnRequest, P.AddPartitionsToTxnResponse, 5)
def _(scene: Scene) -> dict[str, Any]:
    return {"transactions": [{
        "transactional_id": scene.name("x"), "producer_id": 1, "producer_epoch": 0, "verify_only": False,
        "topics": both(scene, "name", {"partitions": [0]}, names="t"),
    }]}  # fmt: skip


@add("AddOffsetsToTxn", P.AddOffsetsToTxnRequest, P.AddOffsetsToTxnResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"transactional_id": scene.name("x"), "producer_id": 1, "producer_epoch": 0, "group_id": scene.name("g")}


@add("EndTxn", P.EndTxnRequest, P.EndTxnResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"transactional_id": scene.name("x"), "producer_id": 1, "producer_epoch": 0, "committed": True}


@add("TxnOffsetCommit", P.TxnOffsetCommitRequest, P.TxnOffsetCommitResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {
        "transactional_id": scene.name("x"), "group_id": scene.name("g"), "producer_id": 1, "producer_epoch": 0,
        "generation_id": -1, "member_id": "", "group_instance_id": None, "topics": both(scene, "name", _COMMITTED),
    }  # fmt: skip


@add("WriteTxnMarkers", P.WriteTxnMarkersRequest, P.WriteTxnMarkersResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"markers": []}


@add("DescribeProducers", A.DescribeProducersRequest, A.DescribeProducersResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": both(scene, "name", {"partition_indexes": [0]})}


@add("DescribeTransactions", A.DescribeTransactionsRequest, A.DescribeTransactionsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"transactional_ids": [scene.name("x"), scene.name("y")]}


@add("ListTransactions", A.ListTransactionsRequest, A.ListTransactionsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"state_filters": [], "producer_id_filters": []}


@add("DescribeTopicPartitions", A.DescribeTopicPartitionsRequest, A.DescribeTopicPartitionsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": both(scene, "name"), "response_partition_limit": 100, "cursor": None}


@add("DescribeTopicPartitions of all", A.DescribeTopicPartitionsRequest, A.DescribeTopicPartitionsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": [], "response_partition_limit": 2000, "cursor": None}


@add("CreateTopics", A.CreateTopicsRequest, A.CreateTopicsResponse, 2, 5, 7)
def _(scene: Scene) -> dict[str, Any]:
    row = {"num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return {"topics": both(scene, "name", row, names="tnq"), "timeout_ms": 9000, "validate_only": True}


@add("CreatePartitions", A.CreatePartitionsRequest, A.CreatePartitionsResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    row = {"count": 2, "assignments": None}
    return {"topics": both(scene, "name", row), "timeout_ms": 9000, "validate_only": True}


@add("DescribeConfigs", A.DescribeConfigsRequest, A.DescribeConfigsResponse, 4)
def _(scene: Scene) -> dict[str, Any]:
    return {"resources": [
        {"resource_type": kind, "resource_name": name, "configuration_keys": None}
        for kind, name in ((2, scene.name("t")), (2, scene.name("o")), (4, "1"), (32, scene.name("g")), (16, "m"))
    ]}  # fmt: skip


_CHANGED = [{"name": "retention.ms", "value": "5000", "config_operation": 0}]


@add("IncrementalAlterConfigs", A.IncrementalAlterConfigsRequest, A.IncrementalAlterConfigsResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"validate_only": True, "resources": [
        {"resource_type": kind, "resource_name": name, "configs": [{"name": config, "value": value,
                                                                     "config_operation": 0}]}
        for kind, name, config, value in (
            (2, scene.name("t"), "retention.ms", "5000"), (2, scene.name("o"), "retention.ms", "5000"),
            (32, scene.name("g"), "consumer.session.timeout.ms", "50000"), (4, "", "message.max.bytes", "9000000"),
            (16, "m", "interval.ms", "5000"),
        )
    ]}  # fmt: skip


@add("AlterConfigs", A.AlterConfigsRequest, A.AlterConfigsResponse, 2)
def _(scene: Scene) -> dict[str, Any]:
    return {"validate_only": True, "resources": [
        {"resource_type": 2, "resource_name": scene.name(each), "configs": [{"name": "retention.ms", "value": "5000"}]}
        for each in "to"
    ]}  # fmt: skip


@add("ListConfigResources", A.ListConfigResourcesRequest, A.ListConfigResourcesResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"resource_types": []}


@add("DescribeCluster", A.DescribeClusterRequest, A.DescribeClusterResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"include_cluster_authorized_operations": True, "endpoint_type": 1}


@add("DescribeLogDirs", A.DescribeLogDirsRequest, A.DescribeLogDirsResponse, 1, 4)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": both(scene, "topic", {"partitions": [0]}, names="to")}


@add("UnregisterBroker", D.UnregisterBrokerRequest, D.UnregisterBrokerResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"broker_id": 9}


@add("CreateDelegationToken", D.CreateDelegationTokenRequest, D.CreateDelegationTokenResponse, 1, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"owner_principal_type": None, "owner_principal_name": None, "renewers": [], "max_lifetime_ms": -1}


@add("RenewDelegationToken", D.RenewDelegationTokenRequest, D.RenewDelegationTokenResponse, 1, 2)
def _(scene: Scene) -> dict[str, Any]:
    return {"hmac": b"x", "renew_period_ms": -1}


@add("ExpireDelegationToken", D.ExpireDelegationTokenRequest, D.ExpireDelegationTokenResponse, 1, 2)
def _(scene: Scene) -> dict[str, Any]:
    return {"hmac": b"x", "expiry_time_period_ms": -1}


@add("DescribeDelegationToken", D.DescribeDelegationTokenRequest, D.DescribeDelegationTokenResponse, 1, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"owners": None}


@add("DescribeQuorum", A.DescribeQuorumRequest, A.DescribeQuorumResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": []}


@add("DescribeClientQuotas", A.DescribeClientQuotasRequest, A.DescribeClientQuotasResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    return {"components": [], "strict": False}


@add("AlterClientQuotas", A.AlterClientQuotasRequest, A.AlterClientQuotasResponse, 1)
def _(scene: Scene) -> dict[str, Any]:
    entity = [{"entity_type": "user", "entity_name": scene.name("u")}]
    ops = [{"key": "producer_byte_rate", "value": 5000.0, "remove": False}]
    return {"entries": [{"entity": entity, "ops": ops}], "validate_only": True}


@add("DescribeUserScramCredentials", A.DescribeUserScramCredentialsRequest, A.DescribeUserScramCredentialsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"users": [{"name": scene.name("u")}]}


@add("AlterUserScramCredentials", A.AlterUserScramCredentialsRequest, A.AlterUserScramCredentialsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"deletions": [{"name": scene.name("u"), "mechanism": 1}], "upsertions": []}


@add("ElectLeaders", A.ElectLeadersRequest, A.ElectLeadersResponse, 1, 2)
def _(scene: Scene) -> dict[str, Any]:
    topics = both(scene, "topic", {"partitions": [0]}, names="t")
    return {"election_type": 0, "topic_partitions": topics, "timeout_ms": 9000}


@add("AlterPartitionReassignments", A.AlterPartitionReassignmentsRequest, A.AlterPartitionReassignmentsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    row = {"partitions": [{"partition_index": 0, "replicas": None}]}
    return {"timeout_ms": 9000, "topics": both(scene, "name", row, names="t")}


@add("ListPartitionReassignments", A.ListPartitionReassignmentsRequest, A.ListPartitionReassignmentsResponse, 0)
def _(scene: Scene) -> dict[str, Any]:
    return {"timeout_ms": 9000, "topics": None}


@add("DescribeAcls", A.DescribeAclsRequest, A.DescribeAclsResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return acl_filter(scene.name("t"))


@add("CreateAcls", A.CreateAclsRequest, A.CreateAclsResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"creations": []}


@add("DeleteAcls", A.DeleteAclsRequest, A.DeleteAclsResponse, 3)
def _(scene: Scene) -> dict[str, Any]:
    return {"filters": [acl_filter(scene.name("nothing"))]}


def acl_filter(name: str | None = None, principal: str | None = None) -> dict[str, Any]:
    return {
        "resource_type_filter": 1, "resource_name_filter": name, "pattern_type_filter": 1,
        "principal_filter": principal, "host_filter": None, "operation": 1, "permission_type": 1,
    }  # fmt: skip


# What changes something comes last.


@add("DeleteRecords", A.DeleteRecordsRequest, A.DeleteRecordsResponse, 2)
def _(scene: Scene) -> dict[str, Any]:
    row = {"partitions": [{"partition_index": 0, "offset": 0}]}
    return {"topics": both(scene, "name", row), "timeout_ms": 9000}


@add("DeleteGroups", A.DeleteGroupsRequest, A.DeleteGroupsResponse, 2)
def _(scene: Scene) -> dict[str, Any]:
    return {"groups_names": [scene.name("g"), scene.name("h"), scene.name("z")]}


@add("DeleteTopics", A.DeleteTopicsRequest, A.DeleteTopicsResponse, 5)
def _(scene: Scene) -> dict[str, Any]:
    return {"topic_names": [scene.name("o"), scene.name("m")], "timeout_ms": 9000}


@add("DeleteTopics by id", A.DeleteTopicsRequest, A.DeleteTopicsResponse, 6)
def _(scene: Scene) -> dict[str, Any]:
    return {"topics": by_id(scene, {"name": None}), "timeout_ms": 9000}
