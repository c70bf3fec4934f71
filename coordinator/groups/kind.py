"""A kind of group that a feature adds: how its groups begin, and how they get along with classic ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from loadwise.coordinator.groups.effects import EpochHeartbeatReply
from loadwise.coordinator.groups.events import KindHeartbeat
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.protocol.error_codes import ErrorCode


class GroupKind(Protocol):
    """One kind of group. Its members send a `KindHeartbeat`; its records are `KindRecord`."""

    @property
    def kind(self) -> str:
        """Return its type in ListGroups."""

    @property
    def replaces_classic(self) -> bool:
        """Return whether such a group and a classic one replace each other while they have no members."""

    @property
    def is_kept_empty(self) -> bool:
        """Return whether a group without members and offsets is kept."""

    def replay(self, group_id: str, records: Iterable[Any], topics: TopicView, now_ms: int) -> Group:
        """Return a group from its records; without records, a new one."""

    def configure(self, group: Group) -> None:
        """Give a group the limits that hold for it now."""

    def refused(self, error: ErrorCode, message: str | None) -> EpochHeartbeatReply:
        """Return the reply to a refused heartbeat."""

    def missing(self, event: KindHeartbeat) -> str:
        """Return what is missing, for the error of a heartbeat that finds no group: ``Group``."""
