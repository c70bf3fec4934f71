"""A consumer, share or streams group to be driven without a network: a clock, and what came out."""

from __future__ import annotations

from collections.abc import Generator
from itertools import count
from typing import Any, Generic, TypeVar

from loadwise.coordinator.groups.effects import Append, Reply, Transition
from loadwise.coordinator.groups.events import Event
from loadwise.coordinator.groups.heartbeat_group import HeartbeatGroup
from loadwise.coordinator.groups.records import Record
from loadwise.coordinator.groups.service.journal import Journal
from loadwise.coordinator.turns import whole

GroupT = TypeVar("GroupT", bound=HeartbeatGroup)


class HeartbeatDriver(Generic[GroupT]):
    """A group, a clock, and what came out."""

    def __init__(self, group: GroupT) -> None:
        self.group = group
        self.now_ms = 0
        self.records: list[Record] = []
        self.journal = Journal()
        """The newest of them of each key."""
        self.transitions: list[Transition] = []
        self.tokens = count(1)

    def handle(self, event: Event) -> Any:
        """Give the group an event; answers the body of its reply, if it has one."""
        answer = None
        effects = self.group.handle(event, self.now_ms)
        for effect in whole(effects) if isinstance(effects, Generator) else effects:
            match effect:
                case Append(record):
                    self.records.append(record)
                    self.journal.append(record)
                case Reply(token, body):
                    assert answer is None, "one answer"
                    assert token == getattr(event, "token", None), "the event's own"
                    answer = body
                case Transition():
                    self.transitions.append(effect)
        return answer
