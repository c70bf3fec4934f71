"""Classes of kafka-python with which tests send any request that Kafka has: its own, or made from our schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
from kafka.protocol.api_message import ApiMessage

from loadwise.protocol.schemas import schema
from loadwise.running_group.kafka_python_messages import FromSchema

MODULES = (
    kafka.protocol.admin,
    kafka.protocol.consumer,
    kafka.protocol.metadata,
    kafka.protocol.producer,
    kafka.protocol.sasl,
)


@cache
def client_message(name: str) -> Any:
    """The class of a message, as ``JoinGroupRequest``: kafka-python's own, where that has all versions of ours."""
    found = next((vars(module)[name] for module in MODULES if name in vars(module)), None)
    is_whole = found is not None and found.max_version >= schema(name).versions[-1]
    return found if is_whole else FromSchema(name, (ApiMessage,), {})


def client_request(api: str, /, version: int, **values: Any) -> Any:
    """A request with rows as dicts, as ``client_request("DeleteTopics", 6, topics=[{"name": "t"}])``."""
    return _with_rows(client_message(f"{api}Request"), {"version": version, **values})


def _with_rows(message: Any, values: dict[str, Any]) -> Any:
    fields = message.fields
    return message(**{name: _row(fields[name], value) if name in fields else value for name, value in values.items()})


def _row(field: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_row(field, each) for each in value]
    return _with_rows(field.data_class, value) if isinstance(value, dict) else value


def request_bytes(
    request: Any, correlation_id: int = 7, client_id: str | None = "client", *, framed: bool = False
) -> bytes:
    """A request with its header, as a client sends it: with its size only if ``framed``."""
    request.with_header(correlation_id, client_id)
    return bytes(request.encode(header=True, framed=framed))


def client_response(request: Any) -> Any:
    """The class of a request's response."""
    return client_message(f"{type(request).__name__.removesuffix('Request')}Response")


def __getattr__(name: str) -> Any:
    if name.endswith(("Request", "Response")):
        return client_message(name)
    raise AttributeError(name)
