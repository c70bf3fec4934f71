"""Rights and ids of heartbeats with member epochs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.handling.access import Access, Need, refused, refused_without
from loadwise.coordinator.kafka_cluster import Cluster, Guard, Handler
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.structs import Struct

_MEMBER = Need(Operation.READ, ResourceType.GROUP, "group_id")


def blank(ids: Mapping[str, str | None]) -> str | None:
    """Return the error for the first id that is given and blank, by Kafka's name of its field."""
    return next(
        (f"{name} can't be empty." for name, each in ids.items() if each is not None and not each.strip()), None
    )


def guarding(topics: Callable[[Call], Iterable[str] | Struct]) -> Guard:
    """Return a guard that requires to read the group and to describe its topics.

    ``topics`` returns those of a request, or the response if they are not valid.
    """

    def guard(call: Call, cluster: Cluster, handle: Handler) -> Outcome:
        refusal = refused_without(call, cluster, _MEMBER)
        if refusal is not None:
            return refusal
        access = Access(call, cluster)
        names = topics(call)
        if isinstance(names, Struct):
            return names
        if not all(access.may(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
            return refused(call, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return handle(call, cluster)

    return guard


GUARD = guarding(lambda call: call.body.subscribed_topic_names or ())
"""Guards heartbeats whose members name their topics."""
