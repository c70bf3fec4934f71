"""The messages of KIP-848's consumer groups, which kafka-python has no classes for, made as it makes its own.

Their definitions are those of Apache Kafka 4.3, in `loadwise.protocol.schemas`: ConsumerGroupHeartbeat (68) v0 and v1
(regular expressions, and member ids that consumers make themselves), ConsumerGroupDescribe (69) v0 and v1 (whether a
member speaks the classic protocol).
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_SCHEMAS = "loadwise.protocol.schemas"


class ConsumerGroupHeartbeatRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """A member is alive, and tells what is new."""


class ConsumerGroupHeartbeatResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """The member's epoch, and its assignment where that is new."""


class ConsumerGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for consumer groups by their ids."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Consumer groups with their members, assignments and targets."""
