"""Builds the response to a request that fails as a whole.

Mirrors ``getErrorResponse`` of Kafka's request classes. Some responses have one error code, others one for each group,
topic or partition that the request names; `_ROWS` lists them. All other fields have the values that mean "unknown" in
Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from loadwise.coordinator.calls import Call, NoAnswer
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.schemas import StructSchema
from loadwise.protocol.structs import Struct, struct_class


@dataclass(frozen=True, slots=True)
class _Rows:
    """A list in the response that has one item for each item of a list in the request.

    Each item repeats the name or id from the request. ``key`` is the field for it if the request's items are not
    structs; a pair means that response and request name the field differently. ``answered`` is a list inside the items
    that stays empty on an error.
    """

    response: str
    request: str
    key: str | tuple[str, str] | None = None
    inner: _Rows | None = None
    answered: _Rows | None = None


class _Why(NamedTuple):
    error: ErrorCode
    message: str | None


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
    "DescribeConfigs": ((range(99), _Rows("results", "resources", answered=_Rows("configs", "configuration_keys"))),),
    "DescribeShareGroupOffsets": (
        (range(99), _Rows("groups", "groups", answered=_Rows("topics", "topics", inner=_PARTITIONS))),
    ),
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
            _Rows("responses", "topics", inner=_FETCHED),
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
        (range(8, 99), _Rows("groups", "groups", answered=_Rows("topics", "topics", inner=_BY_INDEX))),
    ),
    "OffsetForLeaderEpoch": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "Produce": ((range(99), _Rows("responses", "topic_data", inner=_Rows("partition_responses", "partition_data"))),),
    "ShareGroupDescribe": ((range(99), _Rows("groups", "group_ids", "group_id")),),
    "StreamsGroupDescribe": ((range(99), _Rows("groups", "group_ids", "group_id")),),
    "TxnOffsetCommit": ((range(99), _Rows("topics", "topics", inner=_PARTITIONS)),),
    "WriteTxnMarkers": ((range(99), _Rows("markers", "markers", inner=_Rows("topics", "topics", inner=_BY_INDEX))),),
}
_BESIDE_THE_ERROR_OF_ALL: Mapping[str, tuple[range, _Rows]] = {
    "Fetch": (range(13, 99), _Rows("responses", "topics", inner=_FETCHED)),
    "LeaveGroup": (range(3, 99), _Rows("members", "members")),
    "OffsetDelete": (range(99), _Rows("topics", "topics", inner=_PARTITIONS)),
    "OffsetFetch": (range(2, 8), _Rows("topics", "topics", inner=_BY_INDEX)),
}
"""Lists whose items can have errors of their own, in responses with one error code for the whole request."""
_AS_A_WHOLE = frozenset({"DescribeTopicPartitions"})
"""APIs that answer in pages, and therefore as a whole."""
_NO_TOKEN: Mapping[str, Any] = {
    "principal_type": "User",
    "principal_name": "ANONYMOUS",
    "token_requester_principal_type": "User",
    "token_requester_principal_name": "ANONYMOUS",
    "issue_timestamp_ms": -1,
    "expiry_timestamp_ms": -1,
    "max_timestamp_ms": -1,
}
"""The fields that Kafka sets in the error response to a request for a delegation token."""
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


def refusal(call: Call, error: ErrorCode, message: str | None = None, *, tells_why: bool = True) -> Struct | NoAnswer:
    """Return the response to a call that fails with this error; ``message`` is for people."""
    api, body = call.request.api, call.body
    if api.name == "Produce" and body.acks == 0:
        return NoAnswer()
    why = _Why(error, message or f"{error.name}: a fault was configured for this request" if tells_why else None)
    fields = _unknown(api.response.schema, call.version, why)
    rows = _rows_in_errors(api.name, call.version)
    if rows is not None:
        fields[rows.response] = _items(api.response.schema, getattr(body, rows.request), rows, call.version, why)
    if api.name == "AlterUserScramCredentials":
        names = dict.fromkeys(each.name for each in (*body.deletions, *body.upsertions))
        result = api.response.AlterUserScramCredentialsResult
        fields["results"] = [result(user=name, error_code=error, error_message=None) for name in names]
    if api.name == "CreateDelegationToken":
        fields |= _NO_TOKEN
    if api.name == "DescribeClientQuotas":
        fields["entries"] = None
    if api.name == "InitProducerId":
        fields["producer_epoch"] = -1
    if api.name == "JoinGroup":
        fields["protocol_name"] = None if call.version >= _NULLABLE_PROTOCOL else ""
    response: Struct = api.response(version=call.version, **fields)
    return response


def rows_inward(api: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the lists of a request, and of its response, whose items are answered one by one.

    The outermost list comes first. None for an API whose requests are answered as a whole.
    """
    rows = None if api in _AS_A_WHOLE else _rows_of(api, version)
    if rows is None:
        return None
    requests, responses = [], []
    while rows is not None:
        requests.append(rows.request)
        responses.append(rows.response)
        rows = rows.inner or rows.answered
    return tuple(requests), tuple(responses)


def rows_of(call: Call) -> tuple[str, str]:
    """Return a request's list whose items are answered one by one, and the response's list.

    Raises `LookupError` for an API without such lists in this version.
    """
    rows = _item_rows(call)
    return rows.request, rows.response


def refused_rows(call: Call, items: Iterable[Any], error: ErrorCode, message: str | None) -> list[Struct]:
    """Return the results of some items of a call's request, which fail with this error."""
    rows = _item_rows(call)
    return _items(call.request.api.response.schema, items, rows, call.version, _Why(error, message))


def _item_rows(call: Call) -> _Rows:
    found = _rows_of(call.request.api.name, call.version)
    if found is None:
        raise LookupError(f"{call.request.api.name} v{call.version} is answered as a whole")
    return found


def _rows_of(api: str, version: int) -> _Rows | None:
    versions, rows = _BESIDE_THE_ERROR_OF_ALL.get(api, (range(0), None))
    return rows if version in versions else _rows_in_errors(api, version)


def _rows_in_errors(api: str, version: int) -> _Rows | None:
    """Return the list in which each item has the error of the whole request."""
    return next((rows for versions, rows in _ROWS.get(api, ()) if version in versions), None)


def _items(schema: StructSchema, items: Iterable[Any], rows: _Rows, version: int, why: _Why) -> list[Struct]:
    row = schema.fields[rows.response].struct
    assert row is not None, f"{rows.response} of {schema.name} is no array of structs"
    answers = []
    for asked in items or ():
        values = _unknown(row, version, why)
        if isinstance(rows.key, str):
            values[rows.key] = asked
        else:
            values |= {name: getattr(asked, name) for name in _NAMES if name in values and name in asked.schema.fields}
            if rows.key is not None:
                values[rows.key[0]] = getattr(asked, rows.key[1])
        if rows.inner is not None:
            inner = getattr(asked, rows.inner.request)
            values[rows.inner.response] = _items(row, inner, rows.inner, version, why)
        answers.append(struct_class(row)(**values))
    return answers


def _unknown(schema: StructSchema, version: int, why: _Why) -> dict[str, Any]:
    """Return all fields of a struct, empty except for the error."""
    values: dict[str, Any] = {}
    for field in schema.fields.values():
        if version not in field.versions or field.tag is not None:
            continue
        if field.name in _ERRORS:
            values[field.name] = why.error
        elif field.name == "error_message":
            values[field.name] = why.message
        elif field.is_array:
            values[field.name] = None if field.default is None else []
        else:
            values[field.name] = _UNKNOWN.get(field.name, field.default)
    return values
