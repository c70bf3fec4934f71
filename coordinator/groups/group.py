"""The interface of every group, whatever its protocol. Mirrors Kafka's ``Group`` interface."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

from loadwise.coordinator.groups.effects import Effect
from loadwise.coordinator.groups.events import Committer, Event
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import Record
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode


class _EveryTopic:
    def __contains__(self, topic: object) -> bool:
        return True


EVERY_TOPIC: Final[Container[str]] = _EveryTopic()
"""The subscribed topics of a group with unknown subscriptions."""


class GroupMember(Protocol):
    """The interface of every member of a group."""

    @property
    def member_id(self) -> str:
        """Return its id within the group."""

    @property
    def instance_id(self) -> str | None:
        """Return its group instance id if it is static (KIP-345)."""

    @property
    def client_id(self) -> str:
        """Return its client id."""

    @property
    def client_host(self) -> str:
        """Return its client's address."""


class Group(Protocol):
    """A group of any protocol. Only `handle` changes it, and only `Groups` calls that."""

    group_id: str

    @property
    def type(self) -> str:
        """Return its type in ListGroups: ``classic``, ``consumer``, ``share`` or ``streams``."""

    @property
    def state(self) -> Enum:
        """Return the state; its value is the name in ListGroups."""

    @property
    def generation(self) -> int:
        """Return the generation of a classic group, or the group epoch of another one."""

    @property
    def protocol_type(self) -> str | None:
        """Return ``consumer`` for consumers; None for a group that only stores offsets."""

    @property
    def protocol_name(self) -> str | None:
        """Return the elected assignment protocol, or the server-side assignor, if there is one."""

    @property
    def leader(self) -> str | None:
        """Return the member id of the leader, or None."""

    @property
    def members(self) -> Mapping[str, GroupMember]:
        """Return the members by id."""

    @property
    def num_members(self) -> int:
        """Return the number of members and of unused assigned ids (KIP-394)."""

    @property
    def size_bytes(self) -> int:
        """Return the approximate bytes of members' subscriptions and assignments."""

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when the next `Tick` is due; None if nothing expires."""

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]] | None:
        """Return a member's partitions by topic name; None for bytes of a custom assignor."""

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:
        """Return whether this client may commit offsets for all these partitions now."""

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether this client may fetch committed offsets; without a member id it may."""

    def validate_offset_delete(self) -> ErrorCode:
        """Return whether an administrator may delete offsets of topics without subscribers."""

    def expires_from_ms(self, committed: CommittedOffset) -> int | None:
        """Return when the retention of a committed offset starts; None if it does not."""

    def subscribed_topics(self) -> Container[str]:
        """Return the topics that members read; `EVERY_TOPIC` if unknown. O(members): call once."""

    def records(self) -> Sequence[Record]:
        """Return the records that rebuild it, without a current rebalance."""

    def handle(self, event: Event, now_ms: int) -> list[Effect] | Turns[list[Effect]]:
        """Handle an event, then everything due at ``now_ms``; nothing else is handled before its end."""

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Answer all waiting clients with an error."""
