"""One request on its way through the coordinator: the call, the API that handles it, what it wants, the answer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from loadwise.coordinator.cluster.brokers import FIRST_NODE_ID
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.events import Event, Token
from loadwise.coordinator.security.login import Login
from loadwise.protocol.messages import Api, Request
from loadwise.protocol.structs import struct_class

if TYPE_CHECKING:
    from loadwise.coordinator.kafka_cluster import Cluster

Message: TypeAlias = Any
"""A request or response by its fields; messages are made from Kafka's schemas and have no types of Python's."""


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that has not told who it is."""


class Call(NamedTuple):
    """One request, and the token under which its answer is waited for."""

    token: Token
    request: Request
    client_host: str
    """Address of the client, as ``/127.0.0.1`` (Java's way to write it, which DescribeGroups shows)."""
    node_id: int = FIRST_NODE_ID
    """Which broker was asked."""
    login: Login | None = None
    """The login of the client's connection; None where clients need not log in."""
    connection_id: int = 0
    """The client's connection, which no other had before."""
    is_slice: bool = False
    """Whether this is a part of a larger request; see ``large_requests.py``."""

    @property
    def body(self) -> Message:
        """The request itself."""
        return self.request.body

    @property
    def principal(self) -> str:
        """Who asks, as ACLs name it."""
        user = None if self.login is None else self.login.user
        return ANONYMOUS if user is None else f"User:{user}"

    @property
    def version(self) -> int:
        """The request's version, which is the response's too."""
        return self.request.version

    def response(self, **fields: Any) -> Message:
        """The response to this call, in its version; what is not given has its default."""
        return struct_class(self.request.api.response)(version=self.request.version, **fields)


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


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """A response after which the connection is closed: who may not log in learns why."""

    response: Message
    reason: str


Response: TypeAlias = Message | EncodedBody | NoAnswer | HangUp | LastAnswer
"""What becomes of a request in the end."""


class GroupRequest(NamedTuple):
    """What an API wants of a group. The answer follows when the group has replied, at once or later."""

    group_id: str
    event: Event
    """It carries the call's token."""
    respond: Callable[[Call, Any], Response]
    """Makes the response from the body of the group's reply."""


class DelayedFetch(NamedTuple):
    """A fetch that found too little: its answer follows when enough bytes have come, or its time is up."""

    respond: Callable[[], Response]
    logs: Sequence[PartitionLog]
    """The logs that it reads."""
    missing_bytes: int
    """How many more bytes these logs need together."""
    max_wait_ms: int
    committed_only: bool
    """Whether bytes count only when no transaction is open before them."""


class DelayedShareFetch(NamedTuple):
    """A share fetch that could acquire nothing: its answer follows when it can, or its time is up."""

    attempt: Callable[[bool], Response | None]
    """Looks again: the response, or None if there is nothing yet; True if there has to be one now."""
    subjects: Sequence[Hashable]
    """What it waits for: logs, and partitions of its group."""
    max_wait_ms: int


Outcome: TypeAlias = Response | GroupRequest | DelayedFetch | DelayedShareFetch
"""What an API makes of a request: the response, or what has to happen before there is one."""


class Answer(NamedTuple):
    """The response to a call."""

    call: Call
    response: Response


Handler: TypeAlias = "Callable[[Call, Cluster], Outcome]"
"""Handles the requests of an API."""
Guard: TypeAlias = "Callable[[Call, Cluster, Handler], Outcome]"
"""Stands before a handler where there is an authorizer; see ``apis/access.py``."""


@dataclass(frozen=True, slots=True)
class Service:
    """An API, what handles it, and who may use it."""

    api: Api
    handle: Handler
    guard: Guard
    new_partitions: Callable[[Cluster, Message], int] | None = None
    """How many partitions a request would make: those of all slices of a large one count together."""
