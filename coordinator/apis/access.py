"""No API of its own: what each API asks the authorizer for, and what a client gets that may not.

Mirrors the checks in Kafka's ``KafkaApis`` and ``ControllerApis``. Where there is an authorizer, a guard stands before
an API's `handle`. It refuses the whole request; or it takes out what the client may not do, lets the rest be handled,
and puts the refused rows into the answer.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from loadwise.coordinator.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from loadwise.coordinator.authorization.authorizer import OPERATIONS, Client
from loadwise.coordinator.calls import (
    Call,
    DelayedFetch,
    EncodedBody,
    GroupRequest,
    Guard,
    Handler,
    HangUp,
    LastAnswer,
    Message,
    NoAnswer,
    Outcome,
    Response,
)
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.refusals import refusal, refused_rows, rows_of
from loadwise.protocol.error_codes import ErrorCode

FAILED: Mapping[ResourceType, ErrorCode] = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error for a resource that a client may not touch."""
MESSAGES: Mapping[ErrorCode, str] = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""Kafka's words for these errors."""


class Access:
    """What the client of one call may do."""

    def __init__(self, call: Call, cluster: Cluster) -> None:
        self._authorizer = cluster.authorizer
        self._who = Client(call.principal, call.client_host.removeprefix("/"))

    def may(self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> bool:
        """Whether it may do this."""
        return self._authorizer is None or self._authorizer.allows(self._who, operation, resource_type, name)

    def may_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource that it may do this to."""
        return self._authorizer is None or self._authorizer.allows_some(self._who, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> frozenset[Operation]:
        """All that it may do to a resource, for an answer's ``authorized_operations``."""
        if self._authorizer is None:
            return frozenset(OPERATIONS[resource_type])
        return self._authorizer.operations(self._who, resource_type, name)


def describable_topics(call: Call, cluster: Cluster) -> Callable[[str], bool] | None:
    """Which topics the client of a call may know of, by name; None where there is no authorizer: all of them."""
    if cluster.authorizer is None:
        return None
    access = Access(call, cluster)
    return lambda name: access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


class Need(NamedTuple):
    """One thing that a client must be allowed for a whole request."""

    operation: Operation
    resource_type: ResourceType
    field: str | None = None
    """The field of the request with the resource's name; None: the cluster."""


def open_to_all(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
    """Guard of an API that everybody may use."""
    return handle(call, cluster)


def needs(*wanted: Need) -> Guard:
    """Guard of an API whose requests are refused as a whole."""

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        return refused_without(call, cluster, *wanted) or handle(call, cluster)

    return guard


def of_cluster(operation: Operation) -> Guard:
    """Guard of an API for which a client must be allowed something on the cluster."""
    return needs(Need(operation, ResourceType.CLUSTER))


OF_GROUP_MEMBERS = needs(Need(Operation.READ, ResourceType.GROUP, "group_id"))
"""Guard of the APIs that members of a group use."""


def refused_without(call: Call, cluster: Cluster, *wanted: Need) -> Response | None:
    """The refusal of a whole request whose client is not allowed one of these; None if it is allowed all."""
    access = Access(call, cluster)
    for operation, resource_type, field in wanted:
        name = CLUSTER_NAME if field is None else getattr(call.body, field)
        if not access.may(operation, resource_type, name):
            return refused(call, FAILED[resource_type])
    return None


def refused(call: Call, error: ErrorCode) -> Response:
    """The refusal of a whole request."""
    if call.request.api.name == "Produce" and call.body.acks == 0:
        return HangUp(f"{error.name} for a Produce with acks=0")
    return refusal(call, error, MESSAGES[error])


Check: TypeAlias = Callable[[Call, Cluster, Access, Any], ErrorCode]
"""From an item of a request to NONE, or to the error with which it is refused."""


def per_item(check: Check, *whole: Need, message: bool = False) -> Guard:
    """Guard of an API that refuses each item of a request by itself, after what it refuses ``whole``.

    The table in `loadwise.coordinator.refusals` tells which items those are. ``message``: whether their rows have
    Kafka's words too.
    """

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        return refused_without(call, cluster, *whole) or item_by_item(check, call, cluster, handle, message=message)

    return guard


def item_by_item(check: Check, call: Call, cluster: Cluster, handle: Handler, *, message: bool = False) -> Outcome:
    """Handle those items of a request that pass a check, and put the refusals of the others into the answer."""
    access = Access(call, cluster)
    asked, answered = rows_of(call)
    items = getattr(call.body, asked)
    errors = [check(call, cluster, access, item) for item in items or ()]
    if not any(errors):
        return handle(call, cluster)
    refusals: dict[ErrorCode, list[Any]] = {}
    for item, error in zip(items, errors, strict=True):
        if error is not ErrorCode.NONE:
            refusals.setdefault(error, []).append(item)
    rows = [
        row
        for error, refused_items in refusals.items()
        for row in refused_rows(call, refused_items, error, MESSAGES[error] if message else None)
    ]
    passed = [item for item, error in zip(items, errors, strict=True) if error is ErrorCode.NONE]
    rest = with_body(call, {asked: passed})

    def completed(response: Response) -> Response:
        if isinstance(response, NoAnswer):
            return HangUp("an item of a request that wants no answer was refused")
        if isinstance(response, HangUp | LastAnswer | EncodedBody) or getattr(response, "error_code", None):
            return response  # with an error of the whole request, nothing is told of items
        setattr(response, answered, [*getattr(response, answered), *rows])
        return response

    return after(rest, handle(rest, cluster), completed)


def after(rest: Call, outcome: Outcome, change: Callable[[Response], Response]) -> Outcome:
    """The outcome of a call with its response changed, whenever it comes."""
    if isinstance(outcome, GroupRequest):
        respond = outcome.respond
        return outcome._replace(respond=lambda _, reply: change(respond(rest, reply)))
    if isinstance(outcome, DelayedFetch):
        answer = outcome.respond
        return outcome._replace(respond=lambda: change(answer()))
    return change(outcome)


def with_body(call: Call, changes: Mapping[str, Any]) -> Call:
    """The same call with some fields of its body changed."""
    body = copy.copy(call.body)
    for name, value in changes.items():
        setattr(body, name, value)
    return call._replace(request=call.request._replace(body=body))


# ---- checks of items ----


def topics(operation: Operation, field: str = "name", by_id_from: int | None = None) -> Check:
    """Items that are topics, named in this field; from version ``by_id_from`` on by their ids."""

    def check(call: Call, cluster: Cluster, access: Access, item: Message) -> ErrorCode:
        name = getattr(item, field)
        if by_id_from is not None and call.version >= by_id_from:
            found = cluster.topics.get_by_id(item.topic_id)
            if found is None:
                return ErrorCode.NONE  # the API itself tells that there is none
            name = found.name
        return allowed(access, operation, ResourceType.TOPIC, name)

    return check


def names(operation: Operation, resource_type: ResourceType) -> Check:
    """Items that are names themselves."""

    def check(_: Call, __: Cluster, access: Access, item: str) -> ErrorCode:
        return allowed(access, operation, resource_type, item)

    return check


def allowed(access: Access, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> ErrorCode:
    """NONE if a client may do this, and the error if it may not."""
    return ErrorCode.NONE if access.may(operation, resource_type, name) else FAILED[resource_type]


_NAMED = {2: ResourceType.TOPIC, 32: ResourceType.GROUP}
"""Types of resources with configs (``ConfigResource.Type``) that have ACLs of their own; others are the cluster's."""


def configs(operation: Operation) -> Check:
    """Items that are resources with configs."""

    def check(_: Call, __: Cluster, access: Access, item: Message) -> ErrorCode:
        resource_type = _NAMED.get(item.resource_type, ResourceType.CLUSTER)
        name = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else item.resource_name
        return allowed(access, operation, resource_type, name)

    return check


def cluster_operations(access: Access) -> frozenset[Operation]:
    """What a client may do to the cluster; nothing of it is told to one that may not describe it."""
    if not access.may(Operation.DESCRIBE, ResourceType.CLUSTER):
        return frozenset()
    return access.operations(ResourceType.CLUSTER)


def bits(operations: Iterable[Operation]) -> int:
    """Operations as a bit field, as it is on the wire."""
    return sum(1 << operation for operation in operations)
