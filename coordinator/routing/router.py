"""The way of a call: to its API, to the group or the fetch that it waits for, and back as an answer.

A `Call` goes in with the time, and `Answer` objects come out, for that call or for earlier ones. Tests can run it
without a network, under their own clock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from loadwise.coordinator.calls.call import (
    Answer,
    Call,
    DelayedFetch,
    EncodedBody,
    GroupRequest,
    HangUp,
    LastAnswer,
    Later,
    NoAnswer,
    Outcome,
)
from loadwise.coordinator.calls.logins import Login, SecurityOptions, Stage
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.features import features
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.handling.refusals import refusal, refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Keeper, Snapshot
from loadwise.coordinator.routing.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.routing.services import Service, services
from loadwise.coordinator.settings import REBALANCE_PROTOCOLS, BrokerSettings
from loadwise.coordinator.turns import Turns, advance
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import body_in_turns
from loadwise.protocol.structs import Struct

log = logging.getLogger("loadwise.coordinator")


class Router:
    """Passes calls to a cluster, and answers them at once or later."""

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        brokers: Brokers | None = None,
        security: SecurityOptions | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self.services: Mapping[int, Service] = services()
        """The served APIs by key."""
        self.cluster = Cluster(
            settings,
            apis=[service.api for service in self.services.values()],
            features=features(),
            brokers=brokers,
            security=security,
            new_uuid=new_uuid,
        )
        """The state behind it."""
        self.tokens = count(1)
        """Tokens of pending answers. They are never reused, so no client gets an answer from before a restart."""
        self._waiting: dict[Token, tuple[Call, Callable[[Call, Any], Outcome]]] = {}
        self._unfinished: dict[Token, tuple[Call, Turns[Outcome]]] = {}
        """Long calls, the one whose turn it is first."""

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `expire` must be called next; None if nothing is due."""
        cluster = self.cluster
        deadlines = (
            cluster.groups.next_deadline_ms,
            cluster.fetches.next_deadline_ms,
            cluster.upkeep.next_deadline_ms,
            *(feature.next_deadline_ms for feature in cluster.features.expiring),
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # ---- calls ----

    def receive(self, call: Call, now_ms: int) -> list[Answer]:
        """Handle a call. This or a later `receive` or `expire` returns its answer."""
        cluster = self.cluster
        cluster.now_ms = now_ms
        outcome = self._refused(call)
        if outcome is None:
            service = self.services[call.request.api.key]
            if cluster.authorizer is None:
                outcome = service.handle(call, cluster)
            else:
                outcome = service.guard(call, cluster, service.handle)
        return self._carry_out(call, outcome) + self._answers()

    @property
    def has_unfinished(self) -> bool:
        """Return whether `go_on` has something to do."""
        features = self.cluster.features.working
        return bool(self._unfinished) or self.cluster.groups.has_unfinished or any(f.has_unfinished for f in features)

    def begin(self, call: Call, turns: Turns[Outcome]) -> None:
        """Begin a long call in a later turn."""
        self._unfinished[call.token] = (call, turns)

    def go_on(self, now_ms: int) -> list[Answer]:
        """Continue one long call, the work of one group and that of features, each for a while."""
        cluster = self.cluster
        cluster.now_ms = now_ms
        answers: list[Answer] = []
        if cluster.groups.has_unfinished:
            cluster.outbox += cluster.groups.go_on()
        for feature in cluster.features.working:
            if feature.has_unfinished:
                feature.go_on()
        if self._unfinished:
            call, turns = self._unfinished.pop(next(iter(self._unfinished)))
            answers = self._continue(call, turns, turns)
        return answers + self._answers()

    def _continue(self, call: Call, turns: Turns[Outcome], rest: Turns[Outcome]) -> list[Answer]:
        """Continue a long call for a while; ``rest`` is what goes on in a later turn if it is not done by then."""
        try:
            advance(turns)
        except StopIteration as end:
            return self._carry_out(call, end.value)
        except Exception:
            log.exception("%s v%d cannot be answered", call.request.api.name, call.version)
            return [Answer(call, HangUp("the coordinator failed to handle a request"))]
        self.begin(call, rest)
        return []

    def _carry_out(self, call: Call, outcome: Outcome) -> list[Answer]:
        """Return the answer of a handled call, unless it must wait for a group, for records or for a feature."""
        cluster = self.cluster
        if isinstance(outcome, Generator):
            turns = _to_the_end(outcome)
            return self._continue(call, turns, _encoded(call, turns))
        if isinstance(outcome, GroupRequest):
            self._waiting[call.token] = (call, outcome.respond)
            is_here = cluster.brokers.coordinates(call.node_id, outcome.group_id)
            cluster.outbox += cluster.groups.handle(outcome.group_id, outcome.event, cluster.now_ms, is_here=is_here)
        elif isinstance(outcome, DelayedFetch):
            cluster.fetches.delay(call, outcome, cluster.now_ms)
        elif not isinstance(outcome, Later):
            return [Answer(call, outcome)]
        return []

    def take_repeated(self, heartbeat: RepeatedHeartbeat, node_id: int, now_ms: int) -> bool:
        """Keep a classic group's member alive if it repeats its last heartbeat.

        Returns False and changes nothing if the heartbeat needs normal handling: if its answer may be an error, or an
        authorizer must check it.
        """
        cluster = self.cluster
        if cluster.authorizer is not None or not cluster.brokers.coordinates(node_id, heartbeat.group_id):
            return False
        group = cluster.groups.classic_group(heartbeat.group_id)
        return group is not None and group.keep_alive(
            heartbeat.member_id, heartbeat.instance_id, heartbeat.generation, now_ms
        )

    def expire(self, now_ms: int) -> list[Answer]:
        """Complete everything that is due."""
        cluster = self.cluster
        cluster.now_ms = now_ms
        cluster.outbox += cluster.groups.expire(now_ms)
        for feature in cluster.features.expiring:
            feature.expire(now_ms)
        cluster.upkeep.run(now_ms)
        return self._answers()

    def operate(self, operation: Callable[[Groups, int], Iterable[Reply]], now_ms: int) -> list[Answer]:
        """Run an operation on the groups that no client requested; it gets the groups and the time."""
        self.cluster.now_ms = now_ms
        self.cluster.outbox += operation(self.cluster.groups, now_ms)
        return self._answers()

    def forget(self, token: Token) -> None:
        """Drop a request whose client disconnected. A join stays, as in Kafka: only its session ends a member."""
        self._unfinished.pop(token, None)
        self.cluster.fetches.pop(token)
        for feature in self.cluster.features:
            feature.forget(token)

    def disconnected(self, connection_id: int, now_ms: int) -> list[Answer]:
        """Note that a connection was closed."""
        self.cluster.now_ms = now_ms
        for feature in self.cluster.features:
            feature.disconnected(connection_id)
        return self._answers()

    # ---- state ----

    def restore(self, snapshot: Snapshot, now_ms: int) -> None:
        """Restore a snapshot, as `Cluster.restore` does. Pending calls are dropped."""
        self.cluster.restore(snapshot, now_ms)
        self._waiting.clear()
        self._unfinished.clear()

    def load(self, state: Snapshot, keeper: Keeper, now_ms: int) -> None:
        """Load a keeper's state, as `Cluster.load` does. Pending calls are dropped."""
        self.cluster.load(state, keeper, now_ms)
        self._waiting.clear()

    # ---- logins ----

    def new_login(self, certificate: Mapping[str, Any] | None) -> Login | None:
        """Return the login of a new connection; None if clients need not log in.

        The client may have a certificate. Raises `LoginRefusedError` if no client has its name.
        """
        logins = (feature.new_login(certificate) for feature in self.cluster.features)
        return next((login for login in logins if login is not None), None)

    def _refused(self, call: Call) -> Outcome | None:
        """Return the answer to a call that does not reach its API; None if it does."""
        api = call.request.api.name
        if call.login is not None and not call.login.expects(api, self.cluster.now_ms):
            if call.login.stage is Stage.DONE:
                return HangUp(f"{api} came after the session had expired: the client must log in again")
            reason = f"{api} came before the login was complete"
            if call.login.stage is Stage.TOKENS:
                answer = refusal(call, ErrorCode.ILLEGAL_SASL_STATE)
                return HangUp(reason) if isinstance(answer, NoAnswer) else LastAnswer(answer, reason)
            return HangUp(reason)
        enabled = self.cluster.settings.rebalance_protocols
        if enabled != REBALANCE_PROTOCOLS:
            for protocol in REBALANCE_PROTOCOLS:
                if protocol not in enabled and api.startswith(f"{protocol.title()}Group"):
                    return refusal_in_turns(call, ErrorCode.UNSUPPORTED_VERSION, tells_why=False)
        return None

    # ---- answers ----

    def _answers(self) -> list[Answer]:
        """Return the answers that have become ready."""
        cluster = self.cluster
        answers = []
        if cluster.outbox:
            replies, cluster.outbox = cluster.outbox, []
            for reply in replies:
                call, respond = self._waiting.pop(reply.token)
                answers += self._carry_out(call, respond(call, reply.body))
        if cluster.fetches:
            for call, outcome in cluster.fetches.take_completed(cluster.now_ms):
                answers += self._carry_out(call, outcome)
        for feature in cluster.features.answering:
            answers += feature.take_answers(cluster.now_ms)
        return answers


def _to_the_end(turns: Turns[Outcome]) -> Turns[Outcome]:
    """Do all work of a long call, some of which may return more of it."""
    outcome = yield from turns
    while isinstance(outcome, Generator):
        outcome = yield from outcome
    return outcome


def _encoded(call: Call, turns: Turns[Outcome]) -> Turns[Outcome]:
    """Encode what a long call returns, since that takes as long."""
    outcome = yield from turns
    if not isinstance(outcome, Struct):
        return outcome
    try:
        pieces = yield from body_in_turns(outcome, call.version)
    except Exception:
        log.exception("a response to %s v%d cannot be encoded", call.request.api.name, call.version)
        return (yield from refusal_in_turns(call, ErrorCode.UNKNOWN_SERVER_ERROR))
    return EncodedBody(pieces, flexible=call.version in outcome.schema.flexible)
