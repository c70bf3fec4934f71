"""Builds the response to a request that fails as a whole.

Mirrors ``getErrorResponse`` of Kafka's request classes. Some responses have one error code, others one for each group,
topic or partition that the request names: `_KERNELS` lists them, and `Feature.refusals` those of a feature. All other
fields have the values that mean "unknown" in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from loadwise.coordinator.calls.call import Call, NoAnswer
from loadwise.coordinator.calls.refusal_shapes import BY_INDEX, PARTITIONS, Refused, Rows
from loadwise.coordinator.features import features
from loadwise.coordinator.turns import Turns, whole
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.schemas import StructSchema
from loadwise.protocol.structs import Struct, struct_class


class _Why(NamedTuple):
    error: ErrorCode
    message: str | None


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
_FETCHED = Rows("partitions", "partitions", ("partition_index", "partition"))
_NULLABLE_PROTOCOL = 7
_KERNELS: Mapping[str, Refused] = {
    "AlterConfigs": Refused([Rows("responses", "resources")]),
    "AlterPartitionReassignments": Refused([Rows("responses", "topics", inner=PARTITIONS)]),
    "ConsumerGroupDescribe": Refused([Rows("groups", "group_ids", "group_id")]),
    "CreateDelegationToken": Refused(values=lambda _, __: _NO_TOKEN),
    "CreatePartitions": Refused([Rows("results", "topics")]),
    "CreateTopics": Refused([Rows("topics", "topics")]),
    "DeleteGroups": Refused([Rows("results", "groups_names", "group_id")]),
    "DeleteRecords": Refused([Rows("topics", "topics", inner=PARTITIONS)]),
    "DeleteTopics": Refused(
        [
            Rows("responses", "topic_names", "name", versions=range(6)),
            Rows("responses", "topics", versions=range(6, 99)),
        ]
    ),
    "DescribeConfigs": Refused([Rows("results", "resources", answered=Rows("configs", "configuration_keys"))]),
    "DescribeGroups": Refused([Rows("groups", "groups", "group_id")]),
    "DescribeProducers": Refused([Rows("topics", "topics", inner=BY_INDEX)]),
    "DescribeTopicPartitions": Refused([Rows("topics", "topics")]),
    "ElectLeaders": Refused(
        [
            Rows(
                "replica_election_results",
                "topic_partitions",
                inner=Rows("partition_result", "partitions", "partition_id"),
            )
        ]
    ),
    # From v13 on a client reads the error of the whole response.
    "Fetch": Refused(
        [
            Rows("responses", "topics", inner=_FETCHED, versions=range(13)),
            Rows("responses", "topics", inner=_FETCHED, versions=range(13, 99), is_beside=True),
        ]
    ),
    "FindCoordinator": Refused([Rows("coordinators", "coordinator_keys", "key", versions=range(4, 99))]),
    "IncrementalAlterConfigs": Refused([Rows("responses", "resources")]),
    "InitProducerId": Refused(values=lambda _, __: {"producer_epoch": -1}),
    "JoinGroup": Refused(
        values=lambda call, _: {"protocol_name": None if call.version >= _NULLABLE_PROTOCOL else ""},
    ),
    "LeaveGroup": Refused([Rows("members", "members", versions=range(3, 99), is_beside=True)]),
    "ListOffsets": Refused([Rows("topics", "topics", inner=PARTITIONS)]),
    "ListPartitionReassignments": Refused([Rows("topics", "topics", inner=BY_INDEX)]),
    "Metadata": Refused([Rows("topics", "topics")]),
    "OffsetCommit": Refused([Rows("topics", "topics", inner=PARTITIONS)]),
    "OffsetDelete": Refused([Rows("topics", "topics", inner=PARTITIONS, is_beside=True)]),
    "OffsetFetch": Refused(
        [
            Rows("topics", "topics", inner=BY_INDEX, versions=range(2)),
            Rows("topics", "topics", inner=BY_INDEX, versions=range(2, 8), is_beside=True),
            Rows("groups", "groups", answered=Rows("topics", "topics", inner=BY_INDEX), versions=range(8, 99)),
        ]
    ),
    "OffsetForLeaderEpoch": Refused([Rows("topics", "topics", inner=PARTITIONS)]),
    "Produce": Refused([Rows("responses", "topic_data", inner=Rows("partition_responses", "partition_data"))]),
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


def refusal(call: Call, error: ErrorCode, message: str | None = None) -> Struct | NoAnswer:
    """Return the response to a call that fails with this error; ``message`` is for people."""
    return whole(refusal_in_turns(call, error, message))


def refusal_in_turns(
    call: Call, error: ErrorCode, message: str | None = None, *, tells_why: bool = True
) -> Turns[Struct | NoAnswer]:
    """Make the same response row by row."""
    api, body = call.request.api, call.body
    if api.name == "Produce" and body.acks == 0:
        return NoAnswer()
    why = _Why(error, message or f"{error.name}: a fault was configured for this request" if tells_why else None)
    fields = _unknown(api.response.schema, call.version, why)
    shape = _shape(api.name)
    rows = shape.of(call.version)
    if rows is not None and not rows.is_beside:
        items = getattr(body, rows.request) or ()
        fields[rows.response] = yield from _items(api.response.schema, items, rows, call.version, why)
    fields |= shape.values(call, error)
    response: Struct = api.response(**fields)
    return response


def rows_inward(api: str, version: int) -> tuple[str, ...]:
    """Return the lists of a request whose items are answered one by one, the outermost first.

    Empty for an API whose requests are answered as a whole.
    """
    rows = _shape(api).of(version)
    names = []
    while rows is not None:
        names.append(rows.request)
        rows = rows.inner or rows.answered
    return tuple(names)


def rows_of(call: Call) -> tuple[str, str]:
    """Return a request's list whose items are answered one by one, and the response's list.

    Raises `LookupError` for an API without such lists in this version.
    """
    rows = _item_rows(call)
    return rows.request, rows.response


def refused_rows(call: Call, items: Iterable[Any], error: ErrorCode, message: str | None) -> Turns[list[Struct]]:
    """Return the results of some items of a call's request, which fail with this error."""
    rows = _item_rows(call)
    return _items(call.request.api.response.schema, items, rows, call.version, _Why(error, message))


def _item_rows(call: Call) -> Rows:
    found = _shape(call.request.api.name).of(call.version)
    if found is None:
        raise LookupError(f"{call.request.api.name} v{call.version} is answered as a whole")
    return found


@cache
def _shape(api: str) -> Refused:
    tables = (_KERNELS, *(feature.refusals for feature in features()))
    return next((table[api] for table in tables if api in table), Refused())


def _items(schema: StructSchema, items: Iterable[Any], rows: Rows, version: int, why: _Why) -> Turns[list[Struct]]:
    row = schema.fields[rows.response].struct
    assert row is not None, f"{rows.response} of {schema.name} is no array of structs"
    answers = []
    for asked in items:
        yield
        values = _unknown(row, version, why)
        if isinstance(rows.key, str):
            values[rows.key] = asked
        else:
            values |= {name: getattr(asked, name) for name in _NAMES if name in values and name in asked.schema.fields}
            if rows.key is not None:
                values[rows.key[0]] = getattr(asked, rows.key[1])
        if rows.inner is not None:
            inner = getattr(asked, rows.inner.request)
            values[rows.inner.response] = yield from _items(row, inner, rows.inner, version, why)
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
