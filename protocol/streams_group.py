"""The messages of KIP-1071's streams groups, which kafka-python has no classes for, made as it makes its own.

Their definitions are those of Apache Kafka 4.3.1, in `loadwise.protocol.schemas`: StreamsGroupHeartbeat (88) v0 and
StreamsGroupDescribe (89) v0.
"""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

_SCHEMAS = "loadwise.protocol.schemas"


class StreamsGroupHeartbeatRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """A member is alive, and tells what is new: its topology when it joins, and the tasks that it has."""


class StreamsGroupHeartbeatResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """The member's epoch, its tasks where they are new, and what the group waits for."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Asks for streams groups by their ids."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=_SCHEMAS):  # type: ignore[call-arg]  # their metaclass takes it
    """Streams groups with their topology, members, tasks and targets."""
