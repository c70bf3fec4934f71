"""The JSON API, which offers the features of `Coordinator` to other languages.

``docs/testing.md`` lists it. Every request needs the token, except reads if ``open_view`` is set. Responses are JSON
objects; errors are ``{"error": "…"}`` with the message that Python users get.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http import HTTPStatus
from itertools import count
from typing import Any, TypeAlias
from urllib.parse import unquote

from loadwise.coordinator.embedding.control import ClusterControl
from loadwise.coordinator.embedding.http import page
from loadwise.coordinator.embedding.http.server import HttpRequest, HttpResponse, refused
from loadwise.coordinator.errors import (
    BadRequestError,
    CoordinatorError,
    NoSuchFaultError,
    NoSuchGroupError,
    NoSuchMemberError,
    NoSuchSnapshotError,
)
from loadwise.coordinator.faults.rules import CONDITIONS, AnswerError, Delay, Fault
from loadwise.coordinator.keeper import Snapshot
from loadwise.version import __version__

_Json: TypeAlias = dict[str, Any]
_MOST_SNAPSHOTS = 1000
"""Maximum number of snapshots that are kept."""
_NOT_FOUND = (NoSuchGroupError, NoSuchMemberError, NoSuchFaultError, NoSuchSnapshotError)


class HttpApi:
    """Answers requests by acting on a coordinator that runs on the same event loop."""

    def __init__(self, coordinator: ClusterControl, *, open_view: bool) -> None:
        self._coordinator = coordinator
        self._token = coordinator.http_token.encode()
        self._open_view = open_view
        self._snapshots: dict[int, Snapshot] = {}
        self._snapshot_ids = count(1)

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer one request."""
        segments = tuple(unquote(each) for each in request.path.split("/")[1:])
        is_view = request.method == "GET" and segments[:1] in {("",), ("groups",), ("clock",)}
        if not (is_view and self._open_view) and not self._is_authorized(request):
            hint = {"WWW-Authenticate": "Bearer"}
            return refused(HTTPStatus.UNAUTHORIZED, "send the token: Authorization: Bearer TOKEN", hint)
        if is_view and segments == ("",):
            return HttpResponse(
                body=page.html().encode(),
                content_type="text/html; charset=utf-8",
                headers={"Content-Security-Policy": page.security_policy()},
            )
        try:
            found = self._act(request, segments)
        except _NOT_FOUND as problem:
            return refused(HTTPStatus.NOT_FOUND, str(problem))
        except (CoordinatorError, ValueError) as problem:
            return refused(HTTPStatus.BAD_REQUEST, str(problem))
        if found is None:
            return refused(HTTPStatus.NOT_FOUND, f"{request.method} {request.path} does not exist; see docs/testing.md")
        return HttpResponse(body=json.dumps(found).encode())

    def _is_authorized(self, request: HttpRequest) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._token)

    def _act(self, request: HttpRequest, segments: tuple[str, ...]) -> _Json | None:
        """Handle the request; None if there is no such resource."""
        coordinator = self._coordinator
        match request.method, segments:
            case "GET", ("groups",):
                return {
                    "clock": self._clock(),
                    "cluster": {"bootstrap_servers": coordinator.bootstrap_servers, "version": __version__},
                    "groups": [asdict(group) for group in coordinator.groups.all()],
                }
            case "GET", ("groups", group_id):
                return asdict(coordinator.groups.get(group_id))
            case "GET", ("clock",):
                return self._clock()
            case "GET", ("faults",):
                return {"faults": [_shown(fault) for fault in coordinator.faults.pending]}
            case "GET", ("faults", fault_id):
                return _shown(coordinator.faults.get(_number(fault_id)))
            case "DELETE", ("faults",):
                coordinator.faults.clear()
                return {}
            case "DELETE", ("faults", fault_id):
                coordinator.faults.remove(coordinator.faults.get(_number(fault_id)))
                return {}
            case "GET", ("snapshots",):
                return {"snapshots": list(self._snapshots)}
            case "DELETE", ("snapshots", snapshot_id):
                del self._snapshots[self._snapshot_id(snapshot_id)]
                return {}
            case "POST", _:
                return self._post(segments, _body(request))
        return None

    def _post(self, segments: tuple[str, ...], body: _Json) -> _Json | None:
        coordinator = self._coordinator
        match segments:
            case ("faults",):
                return _shown(self._add_fault(body))
            case ("topics",):
                _only(body, name=(str,), partitions=(int,))
                coordinator.create_topic(_needed(body, "name"), body.get("partitions", 1))
            case ("topics", topic, partition, "move-leader"):
                _only(body, to=(int, type(None)))
                coordinator.move_leader(topic, _number(partition), body.get("to"))
            case ("topics", topic, partition, "drop-leader"):
                _only(body)
                coordinator.drop_leader(topic, _number(partition))
            case ("topics", topic, partition, "isr"):
                _only(body, brokers=(list,))
                coordinator.set_isr(topic, _number(partition), _brokers(body))
            case ("brokers", broker, "stop"):
                _only(body)
                coordinator.stop_broker(_number(broker))
            case ("brokers", broker, "start"):
                _only(body)
                coordinator.start_broker(_number(broker))
            case ("transactions", transactional_id, "move-coordinator"):
                _only(body, to=(int, type(None)))
                coordinator.move_transaction_coordinator(transactional_id, body.get("to"))
            case ("groups", group_id, "kick"):
                _only(body, member=(str,))
                coordinator.groups.kick(group_id, _needed(body, "member"))
            case ("groups", group_id, "expire-session"):
                _only(body, member=(str,))
                coordinator.groups.expire_session(group_id, _needed(body, "member"))
            case ("groups", group_id, "rebalance"):
                _only(body)
                coordinator.groups.rebalance(group_id)
            case ("groups", group_id, "move-coordinator"):
                _only(body, to=(int, type(None)))
                coordinator.move_coordinator(group_id, body.get("to"))
            case ("snapshots",):
                _only(body)
                if len(self._snapshots) >= _MOST_SNAPSHOTS:
                    limit = f"there are {_MOST_SNAPSHOTS:,} snapshots already, which is the limit"
                    raise BadRequestError(f"{limit}: delete some (DELETE /snapshots/ID)")
                taken = next(self._snapshot_ids)
                self._snapshots[taken] = coordinator.snapshot()
                return {"id": taken}
            case ("snapshots", snapshot_id, "restore"):
                _only(body)
                coordinator.restore(self._snapshots[self._snapshot_id(snapshot_id)])
            case ("clock", "freeze"):
                _only(body)
                coordinator.clock.freeze()
                return self._clock()
            case ("clock", "step"):
                _only(body, ms=(int,))
                coordinator.clock.step(_needed(body, "ms"))
                return self._clock()
            case ("clock", "resume"):
                _only(body)
                coordinator.clock.resume()
                return self._clock()
            case _:
                return None
        return {}

    def _add_fault(self, body: _Json) -> Fault:
        faults = self._coordinator.faults
        action = body.pop("action", None)
        api = body.pop("api", None)
        if not isinstance(api, str):
            raise BadRequestError("api is missing: use Kafka's name of the API, or *")
        makers: Mapping[str, tuple[Callable[..., Fault], str | None, tuple[type, ...]]] = {
            "answer": (faults.answer, "error", (str, int)),
            "delay": (faults.delay, "ms", (int,)),
            "drop": (faults.drop, None, ()),
            "disconnect": (faults.disconnect, None, ()),
            "corrupt": (faults.corrupt, None, ()),
        }
        if not isinstance(action, str) or action not in makers:
            raise BadRequestError(f"action is {action!r}; it must be one of {', '.join(makers)}")
        make, argument, types = makers[action]
        if argument is None:
            _only(body, **CONDITIONS)
            return make(api, **body)
        _only(body, **CONDITIONS, **{argument: types})
        value = _needed(body, argument)
        del body[argument]
        return make(api, value, **body)

    def _snapshot_id(self, text: str) -> int:
        found = _number(text)
        if found not in self._snapshots:
            there = ", ".join(map(str, self._snapshots)) or "none"
            raise NoSuchSnapshotError(f"there is no snapshot {found}; existing ones: {there}")
        return found

    def _clock(self) -> _Json:
        clock = self._coordinator.clock
        return {"now_ms": clock.now_ms, "is_frozen": clock.is_frozen}


def _shown(fault: Fault) -> _Json:
    action = fault.action
    return {
        "id": fault.id,
        "api": fault.api,
        "action": fault.action.name,
        "error": action.error.name if isinstance(action, AnswerError) else None,
        "ms": action.ms if isinstance(action, Delay) else None,
        "group": fault.group,
        "member": fault.member,
        "client_id": fault.client_id,
        "topic": fault.topic,
        "broker": fault.broker,
        "after_handling": fault.after_handling,
        "skips_left": fault.skips_left,
        "times_left": fault.times_left,
        "hits": fault.hits,
    }


def _body(request: HttpRequest) -> _Json:
    if not request.body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadRequestError("a body must be JSON: send Content-Type: application/json")
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as problem:
        raise BadRequestError(f"the body is not JSON: {problem}") from None
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")
    return body


def _only(body: _Json, **fields: tuple[type, ...]) -> None:
    """Raise for unknown fields and values of the wrong type. In JSON, true is not a number."""
    for name, value in body.items():
        if name not in fields:
            raise BadRequestError(f"there is no field {name!r}; the fields are: {', '.join(fields) or 'none'}")
        if not isinstance(value, fields[name]) or (isinstance(value, bool) and bool not in fields[name]):
            wanted = " or ".join("null" if each is type(None) else each.__name__ for each in fields[name])
            raise BadRequestError(f"{name} is {value!r}; it must be {wanted}")


def _needed(body: _Json, name: str) -> Any:
    if name not in body:
        raise BadRequestError(f"{name} is missing")
    return body[name]


def _brokers(body: _Json) -> list[int]:
    given = _needed(body, "brokers")
    if not all(type(each) is int for each in given):
        raise BadRequestError(f"brokers is {given!r}; it must be a list of broker ids")
    return list(given)


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise BadRequestError(f"{text!r} is not a number")
    return int(text)
