"""A share group or a streams group to be driven without a network: a clock, and what came out."""

from __future__ import annotations

from itertools import count
from typing import Any, Generic, TypeVar

from loadwise.coordinator.groups.effects import Append, Reply, Transition
from loadwise.coordinator.groups.events import Event
from loadwise.coordinator.groups.heartbeat_group import HeartbeatGroup
from loadwise.coordinator.groups.service.journal import Journal

GroupT = TypeVar("GroupT", bound=HeartbeatGroup)


class HeartbeatDriver(Generic[GroupT]):
    """A group, a clock, and what came out."""

    def __init__(self, group: GroupT) -> None:
        self.group = group
        self.now_ms = 0
        self.journal = Journal()
        self.transitions: list[Transition] = []
        self._tokens = count(1)

    def handle(self, event: Event) -> Any:
        """Give the group an event; answers the body of its reply, if it has one."""
        answer = None
        for effect in self.group.handle(event, self.now_ms):
            match effect:
                case Append(record):
                    self.journal.append(record)
                case Reply(_, body):
                    assert answer is None, "one answer"
                    answer = body
                case Transition():
                    self.transitions.append(effect)
        return answer
