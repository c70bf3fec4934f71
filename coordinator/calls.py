"""One request on its way through the coordinator: its call and its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from loadwise.coordinator.cluster.brokers import FIRST_NODE_ID
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.events import Event, Token
from loadwise.coordinator.logins import Login
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
    respond: Callable[[Call, Any], Response]
    """Builds the response from the body of the group's reply."""


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


T = TypeVar("T")
Turns: TypeAlias = Generator[Any, None, T]
"""Work that may be long. It yields after each row, and the router continues it in later turns of the event loop.

Other requests are handled meanwhile, so each row shows the state at its own time. A number counts as so many rows.
"""
ROWS_IN_A_TURN = 250
"""Rows of long calls in one turn of the event loop; the slowest APIs take 20 µs for each."""


Outcome: TypeAlias = "Response | GroupRequest | DelayedFetch | Later | Turns[Outcome]"
"""The result of an API handler: the response, or what must happen first."""


def whole(turns: Turns[T]) -> T:
    """Do all work in this turn, which must be short, and return its result."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: T = end.value
            return result


def listed(rows: Iterable[T]) -> Turns[list[T]]:
    """Collect rows, with a pause after each."""
    found = []
    for row in rows:
        found.append(row)
        yield
    return found


K = TypeVar("K", bound=Hashable)


def counted(names: Iterable[K]) -> Turns[Counter[K]]:
    """Count how often each name occurs, with a pause after each."""
    times: Counter[K] = Counter()
    for name in names:
        times[name] += 1
        yield
    return times


class Answer(NamedTuple):
    """The response to a call."""

    call: Call
    response: Response
