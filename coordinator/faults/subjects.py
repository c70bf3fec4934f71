"""Finds a request's API, client, groups, members and topics, wherever its schema has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.faults.rules import Subject

_GROUP_KEYS = 0


def subject_of(call: Call, topic_name: Callable[[UUID], str | None]) -> Subject:
    """Return what fault rules match in a request; ``topic_name`` resolves topic ids (KIP-516)."""
    return Subject(
        api=call.request.api.name,
        broker=call.node_id,
        client_id=call.request.client_id or "",
        groups=frozenset(_groups(call.body)),
        members=frozenset(_members(call.body)),
        topics=frozenset(_topics(call.body, topic_name)),
    )


def _groups(body: Any) -> Iterator[str]:
    yield from _texts(body, "group_id")
    for name in ("groups", "groups_names", "group_ids"):
        for each in getattr(body, name, None) or ():
            yield each if isinstance(each, str) else each.group_id
    if getattr(body, "key_type", None) == _GROUP_KEYS:
        yield from _texts(body, "key")
        yield from body.coordinator_keys


def _members(body: Any) -> Iterator[str]:
    of_members = getattr(body, "members", None) or ()
    of_groups = (each for each in getattr(body, "groups", None) or () if not isinstance(each, str))
    for each in (body, *of_members, *of_groups):
        yield from _texts(each, "member_id", "group_instance_id", "instance_id")


def _topics(body: Any, topic_name: Callable[[UUID], str | None]) -> Iterator[str]:
    lists = [getattr(body, name, None) for name in ("topics", "topic_data", "topic_names")]
    lists += [getattr(each, "topics", None) for each in getattr(body, "groups", None) or ()]
    for topics in lists:
        for each in topics or ():
            if isinstance(each, str):
                yield each
                continue
            yield from _texts(each, "name", "topic")
            topic_id = getattr(each, "topic_id", None)
            name = topic_name(topic_id) if topic_id is not None else None
            if name is not None:
                yield name


def _texts(struct: Any, *names: str) -> Iterator[str]:
    for name in names:
        text = getattr(struct, name, None)
        if text:
            yield text
