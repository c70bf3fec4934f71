"""Applies faults to requests and responses, between the server and the router.

To the server it looks like a router. Calls and the time go in; answers come out, at once or at a deadline. Without
faults it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from loadwise.coordinator.calls.call import Answer, Call, HangUp, Outcome, Response
from loadwise.coordinator.calls.logins import Login
from loadwise.coordinator.faults.rules import Action, AnswerError, Corrupt, Delay, Disconnect, Drop, Faults
from loadwise.coordinator.faults.subjects import subject_of
from loadwise.coordinator.groups.deadlines import Deadlines
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.handling.refusals import refusal
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.routing.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.turns import Turns
from loadwise.protocol.batches import HEADER_BYTES, read_header


@dataclass(frozen=True, slots=True)
class _Late:
    call: Call
    answer: Answer | None
    """None: the call is not handled yet."""


class FaultInjector:
    """A router that injects the configured faults."""

    def __init__(self, router: Router, faults: Faults) -> None:
        self.router = router
        self.faults = faults
        self._late: dict[Token, _Late] = {}
        self._deadlines: Deadlines[Token] = Deadlines()
        self._spoiled: dict[Token, Action] = {}

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `expire` must be called next; None if nothing is due."""
        deadlines = (self.router.next_deadline_ms, self._deadlines.next_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def receive(self, call: Call, now_ms: int) -> list[Answer]:
        """Handle a call, unless a fault applies to it."""
        fault = self.faults.take(subject_of(call, self._topic_name)) if self.faults.has_pending else None
        if fault is None:
            return self._passed(self.router.receive(call, now_ms), now_ms)
        if fault.after_handling:
            self._spoiled[call.token] = fault.action
            return self._passed(self.router.receive(call, now_ms), now_ms)
        return self._spoil(call, None, fault.action, now_ms)

    def take_repeated(self, heartbeat: RepeatedHeartbeat, node_id: int, now_ms: int) -> bool:
        """Call `Router.take_repeated`; False if there are faults, since one may apply."""
        return not self.faults.has_pending and self.router.take_repeated(heartbeat, node_id, now_ms)

    def expire(self, now_ms: int) -> list[Answer]:
        """Complete everything that is due."""
        answers = self._passed(self.router.expire(now_ms), now_ms)
        for token in self._deadlines.due(now_ms):
            late = self._late.pop(token)
            if late.answer is None:
                answers += self._passed(self.router.receive(late.call, now_ms), now_ms)
            else:
                answers.append(late.answer)
        return answers

    @property
    def has_unfinished(self) -> bool:
        """Return `Router.has_unfinished`."""
        return self.router.has_unfinished

    def begin(self, call: Call, turns: Turns[Outcome]) -> None:
        """Call `Router.begin`."""
        self.router.begin(call, turns)

    def go_on(self, now_ms: int) -> list[Answer]:
        """Call `Router.go_on`."""
        return self._passed(self.router.go_on(now_ms), now_ms)

    def operate(self, operation: Callable[[Groups, int], Iterable[Reply]], now_ms: int) -> list[Answer]:
        """Run an operation on the groups without a client request."""
        return self._passed(self.router.operate(operation, now_ms), now_ms)

    def forget(self, token: Token) -> None:
        """Drop a waiting request whose client disconnected."""
        self._spoiled.pop(token, None)
        if self._late.pop(token, None) is not None:
            self._deadlines.set(token, None)
        self.router.forget(token)

    def disconnected(self, connection_id: int, now_ms: int) -> list[Answer]:
        """Clean up after a closed connection."""
        return self._passed(self.router.disconnected(connection_id, now_ms), now_ms)

    def new_login(self, certificate: Mapping[str, Any] | None) -> Login | None:
        """Call `Router.new_login`."""
        return self.router.new_login(certificate)

    def restore(self, snapshot: Snapshot, now_ms: int) -> None:
        """Restore a snapshot; delayed requests and answers are dropped."""
        self.router.restore(snapshot, now_ms)
        for token in self._late:
            self._deadlines.set(token, None)
        self._late.clear()
        self._spoiled.clear()

    def _passed(self, answers: list[Answer], now_ms: int) -> list[Answer]:
        if self.faults.has_pending:
            self._corrupt(answers)
        if not self._spoiled:
            return answers
        passed = []
        for answer in answers:
            action = self._spoiled.pop(answer.call.token, None)
            passed += [answer] if action is None else self._spoil(answer.call, answer, action, now_ms)
        return passed

    def _corrupt(self, answers: list[Answer]) -> None:
        for answer in answers:
            if (
                _has_records(answer.response)
                and self.faults.take(subject_of(answer.call, self._topic_name), has_records=True) is not None
            ):
                _corrupt(answer.response)

    def _spoil(self, call: Call, answer: Answer | None, action: Action, now_ms: int) -> list[Answer]:
        match action:
            case AnswerError(error):
                return [Answer(call, refusal(call, error))]
            case Delay(ms):
                self._late[call.token] = _Late(call, answer)
                self._deadlines.set(call.token, now_ms + ms)
                return []
            case Drop():
                return []
            case Corrupt():
                raise AssertionError("only responses with records can be corrupted")
            case Disconnect():
                return [Answer(call, HangUp(f"a fault is configured for {call.request.api.name}"))]

    def _topic_name(self, topic_id: UUID) -> str | None:
        topic = self.router.cluster.topics.get_by_id(topic_id)
        return None if topic is None else topic.name


def _has_records(response: Response) -> bool:
    """Return whether it is a fetch response with records."""
    return any(True for _ in _rows(response))


def _corrupt(response: Response) -> None:
    """Change the last byte of each record batch in the answer to a fetch, as a bad disk or wire would."""
    for row in _rows(response):
        row.records = _with_bad_checksums(row.records)


def _rows(response: Response) -> Iterator[Any]:
    for topic in getattr(response, "responses", None) or ():
        for row in getattr(topic, "partitions", None) or ():
            if getattr(row, "records", None):
                yield row


def _with_bad_checksums(records: bytes) -> bytes:
    data, position = bytearray(records), 0
    while (header := read_header(bytes(data[position : position + HEADER_BYTES]))) is not None:
        end = position + header.size_bytes
        if end > len(data):
            break
        data[end - 1] ^= 0xFF
        position = end
    return bytes(data)
