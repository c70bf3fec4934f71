"""One request on its way through the coordinator: its call and its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from loadwise.coordinator.calls.logins import Login
from loadwise.coordinator.cluster.brokers import FIRST_NODE_ID
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.events import Event, Token
from loadwise.coordinator.turns import Turns
from loadwise.protocol.messages import Request
from loadwise.protocol.structs import Struct

if TYPE_CHECKING:  # it has no default before Python 3.13
    from typing_extensions import TypeVar as WithDefault

    Body_co = WithDefault("Body_co", covariant=True, default=Any)
else:
    Body_co = TypeVar("Body_co", covariant=True)


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client without a login."""


class Call(NamedTuple, Generic[Body_co]):
    """One request, and the token of its pending answer. ``Body_co`` is the class of the request."""

    token: Token
    request: Request
    client_host: str
    """The client's address, such as ``/127.0.0.1`` (Java's format, which DescribeGroups shows)."""
    node_id: int = FIRST_NODE_ID
    """The broker that received the request."""
    login: Login | None = None
    """The login of the client's connection; None if clients need not log in."""
    connection_id: int = 0
    """The client's connection; ids are never reused."""

    @property
    def body(self) -> Body_co:
        """Return the request."""
        body: Body_co = self.request.body
        return body

    @property
    def principal(self) -> str:
        """Return the client's principal, as in ACLs."""
        user = None if self.login is None else self.login.user
        return ANONYMOUS if user is None else f"User:{user}"

    @property
    def version(self) -> int:
        """Return the version of the request and its response."""
        return self.request.version


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """A response body that is already encoded and is reused."""

    pieces: Sequence[bytes]
    flexible: bool

    @property
    def size_bytes(self) -> int:
        """Return the size of all pieces."""
        return sum(map(len, self.pieces))


class NoAnswer:
    """The outcome of a request without a response: Produce with acks=0."""


@dataclass(frozen=True, slots=True)
class HangUp:
    """Closes the connection of a request, because Kafka has no other answer or a fault says so."""

    reason: str


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """A response after which the connection is closed, so that a client learns why its login failed."""

    response: Struct
    reason: str


Response: TypeAlias = Struct | EncodedBody | NoAnswer | HangUp | LastAnswer
"""The final result of a request."""


class GroupRequest(NamedTuple):
    """What an API wants from a group. The answer follows when the group has replied, at once or later."""

    group_id: str
    event: Event
    """Contains the call's token."""
    respond: Callable[[Call, Any], Outcome]
    """Builds the response from the body of the group's reply, or says what must happen first."""


class DelayedFetch(NamedTuple):
    """A fetch that found too little. Its answer follows once enough bytes arrive or it times out."""

    respond: Callable[[], Outcome]
    logs: Collection[PartitionLog]
    """The logs that it reads."""
    missing_bytes: int
    """How many more bytes these logs need in total."""
    max_wait_ms: int
    committed_only: bool
    """Whether only bytes before the first open transaction count."""


class Later:
    """The outcome of a call that is answered elsewhere, as by `Feature.take_answers` of the feature that keeps it."""


Outcome: TypeAlias = "Response | GroupRequest | DelayedFetch | Later | Turns[Outcome]"
"""The result of an API handler: the response, or what must happen first."""


class Answer(NamedTuple):
    """The response to a call."""

    call: Call
    response: Response
