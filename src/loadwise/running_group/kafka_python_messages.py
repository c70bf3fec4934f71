"""Message classes for kafka-python's clients from our schemas, for APIs that kafka-python lacks.

::

    class ConsumerGroupDescribeRequest(ApiMessage, metaclass=FromSchema):
        pass
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kafka.protocol.api_message import ApiMessage, ApiMessageData
from kafka.protocol.data_container import SlotsBuilder
from kafka.protocol.schemas import StructField

from loadwise.protocol.schemas import Field, MessageSchema, schema


class FromSchema(ApiMessageData):  # type: ignore[misc]  # kafka-python is untyped
    """Metaclass of message classes, which have Kafka's names."""

    def __new__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any], *, init: bool = True) -> Any:
        """Make the class; kafka-python's own metaclass reads a JSON file. ``init=False``: the class of one version."""
        if not init:
            return super().__new__(cls, name, bases, attributes, init=False)
        json = _as_json(schema(name))
        return SlotsBuilder.__new__(cls, name, bases, {**attributes, "_json": json, "_struct": StructField(json)})


def _as_json(message: MessageSchema) -> dict[str, Any]:
    return {
        "name": message.name,
        "type": "request" if message.name.endswith("Request") else "response",
        "apiKey": message.key,
        "validVersions": _versions(message.versions),
        "flexibleVersions": _versions(message.flexible),
        "fields": list(_fields(message.fields.values())),
    }


def _fields(fields: Iterable[Field]) -> Iterator[dict[str, Any]]:
    for field in fields:
        json: dict[str, Any] = {
            "name": field.name,
            "type": f"[]{field.kind}" if field.is_array else field.kind,
            "versions": _versions(field.versions),
            "nullableVersions": _versions(field.nullable),
        }
        if field.tag is not None:
            json |= {"taggedVersions": _versions(field.tagged), "tag": field.tag}
        if field.default is None and field.kind not in {"uuid", "bitfield"}:
            json["default"] = "null"
        elif field.default:
            json["default"] = str(field.default)
        if field.struct is not None:
            json["fields"] = list(_fields(field.struct.fields.values()))
        yield json


def _versions(versions: range) -> str:
    return f"{versions[0]}-{versions[-1]}" if versions else "none"


class ConsumerGroupDescribeRequest(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """Asks for consumer groups by their ids (KIP-848)."""


class ConsumerGroupDescribeResponse(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """Consumer groups with their members, assignments and targets."""


class ConsumerGroupHeartbeatRequest(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """Joins a consumer group, stays in it and leaves it (KIP-848)."""


class ConsumerGroupHeartbeatResponse(ApiMessage, metaclass=FromSchema):  # type: ignore[misc]  # kafka-python is untyped
    """The member's epoch, assignment and next heartbeat, or an error."""
