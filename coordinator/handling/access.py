"""The rights that each API requires, and the errors without them.

Mirrors the checks in Kafka's ``KafkaApis`` and ``ControllerApis``. With an authorizer, a guard runs before an API's
`handle`. It either refuses the whole request, or removes the forbidden items, handles the rest, and adds the errors to
the response.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeAlias

from loadwise.coordinator.calls.call import (
    Call,
    DelayedFetch,
    EncodedBody,
    GroupRequest,
    HangUp,
    LastAnswer,
    Later,
    NoAnswer,
    Outcome,
    Response,
)
from loadwise.coordinator.calls.rights import CLUSTER_NAME, OPERATIONS, Client, Operation, ResourceType
from loadwise.coordinator.handling.refusals import refusal_in_turns, refused_rows, rows_of
from loadwise.coordinator.kafka_cluster import Cluster, Guard, Handler
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode

FAILED: Mapping[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of each resource type for a client without rights."""
MESSAGES: Mapping[ErrorCode, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's words for these errors."""


class Access:
    """The rights of one call's client."""

    def __init__(self, call: Call, cluster: Cluster) -> None:
        self._authorizer = cluster.authorizer
        self._who = Client(call.principal, call.client_host.removeprefix("/"))

    def may(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Return whether it may do this."""
        return self._authorizer is None or self._authorizer.allows(self._who, operation, resource_type, name)

    def may_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return whether it may do this to any resource."""
        return self._authorizer is None or self._authorizer.allows_some(self._who, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> frozenset[Operation]:
        """Return its operations on a resource, for the response's ``authorized_operations``."""
        if self._authorizer is None:
            return frozenset(OPERATIONS[resource_type])
        return self._authorizer.operations(self._who, resource_type, name)


def describable_topics(call: Call, cluster: Cluster) -> Callable[[str], bool] | None:
    """Return whether the client may describe a topic, by name; None without an authorizer."""
    if cluster.authorizer is None:
        return None
    access = Access(call, cluster)
    return lambda name: access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


class Need(NamedTuple):
    """A right that a client needs for a whole request."""

    operation: Operation
    resource_type: ResourceType
    field: str | None = None
    """The request's field with the resource's name; None: the cluster."""


def open_to_all(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
    """Guard an API that every client may use."""
    return handle(call, cluster)


def needs(*wanted: Need) -> Guard:
    """Return a guard for an API whose requests are refused as a whole."""

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        return refused_without(call, cluster, *wanted) or handle(call, cluster)

    return guard


def of_cluster(operation: Operation) -> Guard:
    """Return a guard for an API that needs a right on the cluster."""
    return needs(Need(operation, ResourceType.CLUSTER))


OF_GROUP_MEMBERS = needs(Need(Operation.READ, ResourceType.GROUP, "group_id"))
"""Guards the APIs of group members."""


def refused_without(call: Call, cluster: Cluster, *wanted: Need) -> Outcome | None:
    """Return the error for a client that lacks one of these rights; None if it has all."""
    access = Access(call, cluster)
    for operation, resource_type, field in wanted:
        name = CLUSTER_NAME if field is None else getattr(call.body, field)
        if not access.may(operation, resource_type, name):
            return refused(call, FAILED[resource_type])
    return None


def refused(call: Call, error: ErrorCode, message: str | None = None) -> Outcome:
    """Return the error response to a whole request; ``message`` is for people, and known for missing rights."""
    if call.request.api.name == "Produce" and call.body.acks == 0:
        return HangUp(f"{error.name} for a Produce with acks=0")
    return refusal_in_turns(call, error, message or MESSAGES[error])


Check: TypeAlias = Callable[[Call, Cluster, Access, Any], ErrorCode]
"""Returns the error of a request's item, or NONE."""


def per_item(check: Check, *whole: Need, message: bool = False) -> Guard:
    """Return a guard for an API that refuses items separately, after the checks in ``whole``.

    The table in `loadwise.coordinator.handling.refusals` lists those items. ``message``: whether their rows contain
    Kafka's message.
    """

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        return refused_without(call, cluster, *whole) or item_by_item(check, call, cluster, handle, message=message)

    return guard


def item_by_item(
    check: Check, call: Call, cluster: Cluster, handle: Handler, *, message: bool = False
) -> Turns[Outcome]:
    """Handle the items that pass a check, and add the others' errors to the response."""
    access = Access(call, cluster)
    asked, answered = rows_of(call)
    passed: list[Any] = []
    refusals: dict[ErrorCode, list[Any]] = {}
    for item in getattr(call.body, asked) or ():
        error = check(call, cluster, access, item)
        (passed if error is ErrorCode.NONE else refusals.setdefault(error, [])).append(item)
        yield
    if not refusals:
        return handle(call, cluster)
    rows = []
    for error, items in refusals.items():
        rows += yield from refused_rows(call, items, error, MESSAGES[error] if message else None)
    rest = with_body(call, {asked: passed})

    def completed(response: Response) -> Response:
        if isinstance(response, NoAnswer):
            return HangUp("an item of a request without a response was refused")
        if isinstance(response, HangUp | LastAnswer | EncodedBody) or getattr(response, "error_code", None):
            return response  # an error of the whole request has no items
        setattr(response, answered, [*getattr(response, answered), *rows])
        return response

    return after(rest, handle(rest, cluster), completed)


def after(rest: Call, outcome: Outcome, change: Callable[[Response], Response]) -> Outcome:
    """Return an outcome that changes its response, at once or later."""
    if isinstance(outcome, Generator):
        return _after(rest, outcome, change)
    if isinstance(outcome, GroupRequest):
        respond = outcome.respond
        return outcome._replace(respond=lambda _, reply: after(rest, respond(rest, reply), change))
    if isinstance(outcome, DelayedFetch):
        answer = outcome.respond
        return outcome._replace(respond=lambda: after(rest, answer(), change))
    assert not isinstance(outcome, Later), "guards of items do not guard APIs that answer later"
    return change(outcome)


def _after(rest: Call, turns: Turns[Outcome], change: Callable[[Response], Response]) -> Turns[Outcome]:
    outcome = yield from turns
    return after(rest, outcome, change)


def with_body(call: Call, changes: Mapping[str, Any]) -> Call:
    """Return the call with some fields of its body changed."""
    body = copy.copy(call.body)
    for name, value in changes.items():
        setattr(body, name, value)
    return call._replace(request=call.request._replace(body=body))


# ---- checks of items ----


def topics(operation: Operation, field: str = "name", by_id_from: int | None = None) -> Check:
    """Return a check of topics in this field, by id from version ``by_id_from`` on."""

    def check(call: Call, cluster: Cluster, access: Access, item: Any) -> ErrorCode:
        name = getattr(item, field)
        if by_id_from is not None and call.version >= by_id_from:
            found = cluster.topics.get_by_id(item.topic_id)
            if found is None:
                return ErrorCode.NONE  # the API itself reports an unknown topic
            name = found.name
        return allowed(access, operation, ResourceType.TOPIC, name)

    return check


def names(operation: Operation, resource_type: ResourceType) -> Check:
    """Return a check of items that are names themselves."""

    def check(_: Call, __: Cluster, access: Access, item: str) -> ErrorCode:
        return allowed(access, operation, resource_type, item)

    return check


def allowed(access: Access, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> ErrorCode:
    """Return NONE if a client may do this, else the error."""
    return ErrorCode.NONE if access.may(operation, resource_type, name) else FAILED[resource_type]


_HAVE_CONFIGS: Mapping[int, ResourceType] = {
    2: ResourceType.TOPIC,
    4: ResourceType.CLUSTER,
    8: ResourceType.CLUSTER,
    16: ResourceType.CLUSTER,
    32: ResourceType.GROUP,
}
"""The resources whose ACLs guard each type of configs (``ConfigResource.Type``)."""


def configs(operation: Operation) -> Check:
    """Return a check of resources with configs."""

    def check(_: Call, __: Cluster, access: Access, item: Any) -> ErrorCode:
        resource_type = _HAVE_CONFIGS.get(item.resource_type)
        if resource_type is None:
            return ErrorCode.NONE  # the API itself reports an unknown type
        name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else item.resource_name
        return allowed(access, operation, resource_type, name)

    return check


def cluster_operations(access: Access) -> frozenset[Operation]:
    """Return a client's operations on the cluster; none if it may not describe it."""
    if not access.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return frozenset()
    return access.operations(ResourceType.CLUSTER)
