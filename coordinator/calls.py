"""One request on its way through the broker: the call, the service that handles it, the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from loadwise.coordinator.cluster.brokers import FIRST_NODE_ID
from loadwise.coordinator.groups.events import Token
from loadwise.protocol.messages import Api, Request

if TYPE_CHECKING:
    from loadwise.coordinator.kafka_cluster import Cluster

Message: TypeAlias = Any
"""One of kafka-python's message objects; they have no types."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, and the token under which its answer is waited for."""

    token: Token
    request: Request
    client_host: str
    """Address of the client, as ``/127.0.0.1`` (Java's way to write it, which DescribeGroups shows)."""
    node_id: int = FIRST_NODE_ID
    """Which broker was asked."""

    @property
    def body(self) -> Message:
        """The request itself."""
        return self.request.body

    @property
    def version(self) -> int:
        """The request's version, which is the response's too."""
        return self.request.version

    def response(self, **fields: Any) -> Message:
        """The response to this call, in its version. Give every list: the default ones are shared."""
        return self.request.api.response(version=self.request.version, **fields)


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A response's body that was encoded before and is used again."""

    data: bytes
    flexible: bool


class NoAnswer:
    """What a request gets that wants no response: Produce with acks=0."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """Closes the connection of a request: Kafka has no other answer to it, or a test asked for this fault."""

    reason: str


Outcome: TypeAlias = Message | EncodedBody | NoAnswer | HangUp | None
"""A response, or None where it comes later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response for whoever waits under this token."""

    call: Call
    response: Message | EncodedBody | NoAnswer | HangUp


@dataclass(frozen=True, slots=True)
class Service:
    """An API and what handles it."""

    api: Api
    handle: Callable[[Call, Cluster], Outcome]
