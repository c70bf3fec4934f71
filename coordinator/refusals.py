"""The answer to a request that is refused as a whole: an error code at every place where its client looks for one.

Mirrors ``getErrorResponse`` of each of Kafka's request classes. Some responses have one error code, some one for each
group, topic or partition that the request names; `_ROWS` lists them. All other fields have the values that mean
"unknown" in Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadwise.coordinator.calls import Call, Message, NoAnswer
from loadwise.protocol.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class _Rows:
    """A list in the response that has one item for each item of a list in the request.

    An item takes over what names it. ``key``: what the response calls the request's item where that is no
    struct; a pair: what the response and the request call the same field.
    """

    response: str
    request: str
    key: str | tuple[str, str] | None = None
    inner: _Rows | None = None


_PARTITIONS = _Rows("partitions", "partitions")
_FETCHED = _Rows("partitions", "partitions", ("partition_index", "partition"))
_BY_INDEX = _Rows("partitions", "partition_indexes", "partition_index")
_ROWS: Mapping[str, tuple[tuple[range, _Rows], ...]] = {
    "AddPartitionsToTxn": (
        (
            range(4),
            _Rows(
                "results_by_topic_v3_and_below",
                "v3_and_below_topics",
                inner=_Rows("results_by_partition", "partitions", "partition_index"),
            ),
        ),
    ),
    "AlterClientQuotas": ((range(99), _Rows("entries", "entries", inner=_Rows("entity", "entity"))),),
    "AlterPartitionReassignments": (
        (range(99), _Rows("responses", "topics", inner=_Rows("partitions", "partitions"))),
    ),
    "AlterConfigs": ((range(99), _Rows("responses", "resources")),),
    "ConsumerGroupDescribe": ((range(99), _Rows("groups", "group_ids", "group_id")),),
    "CreateAcls": ((range(99), _Rows("results", "creations")),),
    "CreatePartitions": ((range(99), _Rows("results", "topics")),),
    "CreateTopics": ((range(99), _Rows("topics", "topics")),),
    "DeleteAcls": ((range(99), _Rows("filter_results", "filters")),),
    "DeleteGroups": ((range(99), _Rows("results", "groups_names", "group_id")),),
    "DeleteRecords": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "DeleteTopics": (
        (range(6), _Rows("responses", "topic_names", "name")),
        (range(6, 99), _Rows("responses", "topics")),
    ),
    "DescribeConfigs": ((range(99), _Rows("results", "resources")),),
    "DescribeGroups": ((range(99), _Rows("groups", "groups", "group_id")),),
    "DescribeProducers": ((range(99), _Rows("topics", "topics", inner=_BY_INDEX)),),
    "DescribeTopicPartitions": ((range(99), _Rows("topics", "topics")),),
    "DescribeTransactions": ((range(99), _Rows("transaction_states", "transactional_ids", "transactional_id")),),
    "DescribeUserScramCredentials": ((range(99), _Rows("results", "users")),),
    "ElectLeaders": (
        (
            range(99),
            _Rows(
                "replica_election_results",
                "topic_partitions",
                inner=_Rows("partition_result", "partitions", "partition_id"),
            ),
        ),
    ),
    # From v13 on a client reads the error of the whole response.
    "Fetch": (
        (
            range(13),
            _Rows("responses", "topics", inner=_Rows("partitions", "partitions", ("partition_index", "partition"))),
        ),
    ),
    "FindCoordinator": ((range(4, 99), _Rows("coordinators", "coordinator_keys", "key")),),
    "IncrementalAlterConfigs": ((range(99), _Rows("responses", "resources")),),
    "ListOffsets": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "ListPartitionReassignments": ((range(99), _Rows("topics", "topics", inner=_BY_INDEX)),),
    "Metadata": ((range(99), _Rows("topics", "topics")),),
    "OffsetCommit": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "OffsetFetch": (
        (range(2), _Rows("topics", "topics", inner=_BY_INDEX)),
        (range(8, 99), _Rows("groups", "groups")),
    ),
    "OffsetForLeaderEpoch": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "Produce": ((range(99), _Rows("responses", "topic_data", inner=_Rows("partition_responses", "partition_data"))),),
    "TxnOffsetCommit": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "WriteTxnMarkers": ((range(99), _Rows("markers", "markers", inner=_Rows("topics", "topics", inner=_BY_INDEX))),),
}
_ERRORS = ("error_code", "partition_error_code")
_NAMES = (
    "entity_name",
    "entity_type",
    "group_id",
    "index",
    "name",
    "partition",
    "partition_index",
    "producer_id",
    "resource_name",
    "resource_type",
    "topic",
    "topic_id",
)
_UNKNOWN: Mapping[str, Any] = {
    "base_offset": -1,
    "committed_offset": -1,
    "high_watermark": -1,
    "low_watermark": -1,
    "node_id": -1,
    "port": -1,
}
_NULLABLE_PROTOCOL = 7


def refusal(call: Call, error: ErrorCode) -> Message | NoAnswer:
    """The response to a call that is refused with this error."""
    api, body = call.request.api, call.body
    if api.name == "Produce" and body.acks == 0:
        return NoAnswer()
    fields = _unknown(api.response, call.version, error)
    for versions, rows in _ROWS.get(api.name, ()):
        if call.version in versions:
            fields[rows.response] = _items(api.response, body, rows, call.version, error)
    if api.name == "AlterUserScramCredentials":
        names = dict.fromkeys(each.name for each in (*body.deletions, *body.upsertions))
        result = api.response.AlterUserScramCredentialsResult
        fields["results"] = [result(user=name, error_code=error, error_message=None) for name in names]
    if api.name == "DescribeClientQuotas":
        fields["entries"] = None
    if api.name == "InitProducerId":
        fields["producer_epoch"] = -1
    if api.name == "JoinGroup":
        fields["protocol_name"] = None if call.version >= _NULLABLE_PROTOCOL else ""
    return api.response(version=call.version, **fields)


def _items(struct: Any, request: Message, rows: _Rows, version: int, error: ErrorCode) -> list[Message]:
    field = struct._struct.fields[rows.response]
    items = []
    for asked in getattr(request, rows.request) or ():
        values = _unknown(field.data_class, version, error)
        if isinstance(rows.key, str):
            values[rows.key] = asked
        else:
            values |= {name: getattr(asked, name) for name in _NAMES if name in values and name in asked._struct.fields}
            if rows.key is not None:
                values[rows.key[0]] = getattr(asked, rows.key[1])
        if rows.inner is not None:
            values[rows.inner.response] = _items(field.data_class, asked, rows.inner, version, error)
        items.append(field.data_class(version=version, **values))
    return items


def _unknown(struct: Any, version: int, error: ErrorCode) -> dict[str, Any]:
    """All fields of a struct, with nothing in them but the error."""
    values: dict[str, Any] = {}
    for field in struct._struct.fields.values():
        if not field.for_version_q(version) or field.tag is not None:
            continue
        if field.name in _ERRORS:
            values[field.name] = error
        elif field.name == "error_message":
            values[field.name] = f"{error.name}: this answer was asked for"
        elif field.is_array():
            values[field.name] = []
        else:
            values[field.name] = _UNKNOWN.get(field.name, field.default)
    return values
