"""Messages with anything in their fields, as kafka-python's classes, and the same as ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from client_messages import client_message
from hypothesis import strategies as st
from kafka.protocol.api_message import ApiMessage

from loadwise.running_group.kafka_python_messages import FromSchema

NUMBERS = {"DescribeTopicPartitionsResponse"}
_INTEGERS = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}
_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(-limit, limit - 1) for name, limit in _INTEGERS.items()},
    "uint16": st.integers(0, 2**16 - 1),
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "uuid": st.uuids(allow_nil=False),
    "bitfield": st.none() | st.sets(st.integers(0, 30)),
    "string": st.text(max_size=200),
    "bytes": st.binary(max_size=200),
    "records": st.binary(max_size=200),
}


Simple = Mapping[str, st.SearchStrategy[Any]]


def contents(
    fields: Iterable[Any], version: int, simple: Simple = _SIMPLE, most: int = 150
) -> dict[str, st.SearchStrategy[Any]]:
    """What the fields of a version may hold, by name: ``simple`` values by type, up to so many in an array."""
    return {field.name: values(field, version, simple, most) for field in fields if field.for_version_q(version)}


def values(field: Any, version: int, simple: Simple, most: int) -> st.SearchStrategy[Any]:
    if field.is_struct_array():
        rows = contents(field.fields.values(), version, simple, most)
        allowed = st.lists(st.builds(field.data_class, **rows), max_size=3)
    elif field.is_array():
        allowed = st.lists(simple[field.array_of.type_str], max_size=most)
    elif field.is_struct():
        allowed = st.builds(field.data_class, **contents(field.fields.values(), version, simple, most))
    else:
        allowed = simple[field.type_str]
    return st.none() | allowed if field.nullable_for_version_q(version) else allowed


@cache
def message(theirs: Any, version: int) -> st.SearchStrategy[Any]:
    return st.builds(theirs, version=st.just(version), **contents(theirs._struct.fields.values(), version))


@cache
def client(name: str) -> Any:
    """The class of kafka-python, or one of our schema where kafka-python reads operations as a number."""
    return FromSchema(name, (ApiMessage,), {}) if name in NUMBERS else client_message(name)


def theirs_name(name: str, theirs: Any) -> str:
    """kafka-python has one name for the operations of topics and of the cluster."""
    return name if name in theirs.fields else name.removeprefix("topic_").removeprefix("cluster_")


def as_ours(theirs: Any, message: Any) -> Any:
    """kafka-python's message as one of ours."""
    made = message()
    for name, field in message.schema.fields.items():
        value = getattr(theirs, theirs_name(name, theirs))
        inside = None if field.struct is None else getattr(message, field.struct.name)
        if inside is not None and value is not None:
            value = [as_ours(each, inside) for each in value] if field.is_array else as_ours(value, inside)
        setattr(made, name, value)
    return made
