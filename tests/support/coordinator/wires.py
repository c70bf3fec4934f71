"""A broker that tests ask by bytes, as a client does, without a socket."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

from client_messages import client_request, client_response, request_bytes
from commits import commit
from record_batches import batch

from loadwise.coordinator import Acl
from loadwise.coordinator.authorization.authorizer import Authorizer
from loadwise.coordinator.calls.call import Answer, Call, EncodedBody
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.coordinator.turns import whole
from loadwise.protocol.errors import TooManyElementsError
from loadwise.protocol.messages import decode_request, encode_response, frame_of, request_in_turns, served

APIS = served(service.api for service in services().values())
TOKENS = count(1)


class Wire:
    """A broker with topic ``t`` (2 partitions, 3 records in partition 0) and group ``g`` (offset 2), by bytes."""

    def __init__(self) -> None:
        self.router = Router()
        self.cluster = self.router.cluster
        (node,) = self.cluster.brokers.nodes
        node.host, node.port = "127.0.0.1", 9092
        self.topic_id: UUID = self.cluster.topics.create("t", 2).id
        log = self.cluster.topics.log("t", 0)
        assert log is not None
        log.append(batch([b"a", b"b", b"c"]))
        offsets = {Partition("t", 0): CommittedOffset(2, 0, "note")}
        commit(self.cluster.groups, "g", Committer(), offsets)

    def send(self, frame: bytes) -> list[Answer]:
        return self.begin(frame) + self.finish()

    def begin(self, frame: bytes) -> list[Answer]:
        """Handle a request for one turn."""
        try:
            request = decode_request(frame, APIS)
        except TooManyElementsError:
            request = whole(request_in_turns(frame, APIS, (), most=1_000_000, most_inside=1_000_000))
        call = Call(next(TOKENS), request, "/127.0.0.1")
        return self.router.receive(call, 1000)

    def finish(self) -> list[Answer]:
        """Do all that has begun."""
        answers: list[Answer] = []
        while self.router.has_unfinished:
            answers += self.router.go_on(1000)
        return answers

    def ask(self, api: str, /, version: int, **values: Any) -> Any:
        """Send a request, and read the one answer that comes, as the client would."""
        return self.exchange(client_request(api, version, **values))

    def exchange(self, request: Any) -> Any:
        (answer,) = self.send(request_bytes(request))
        return self.read(answer, request)

    @staticmethod
    def read(answer: Answer, request: Any) -> Any:
        """Read an answer as the client does that sent this request."""
        if isinstance(answer.response, EncodedBody):
            frame = b"".join(frame_of(answer.response.pieces, 7, flexible=answer.response.flexible))
        else:
            frame = bytes(encode_response(answer.response, answer.call.version, 7))
        return client_response(request).decode(frame[4:], version=request.API_VERSION, header=True)


def allow(wire: Wire, *granted: str) -> None:
    """Give clients these rights alone, such as ``GROUP READ g``."""
    rows = (row.split() for row in granted)
    wire.cluster.authorizer = Authorizer(
        [Acl.of("User:ANONYMOUS", operation, kind, name) for kind, operation, name in rows]
    )


def only(items: Any) -> Any:
    (item,) = items
    return item
