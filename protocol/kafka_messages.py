"""Kafka's requests and responses as classes, by Kafka's names: ``from … import JoinGroupRequest``.

Each is a `loadwise.protocol.structs.Struct`, made at its first import from its `loadwise.protocol.schemas`. The structs
inside a message are attributes of its class, as ``JoinGroupRequest.JoinGroupRequestProtocol``.
"""

from __future__ import annotations

from typing import Any

from loadwise.protocol.schemas import schema
from loadwise.protocol.structs import struct_class


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        made = struct_class(schema(name))
    except LookupError as unknown:
        raise AttributeError(str(unknown)) from unknown
    globals()[name] = made
    return made
