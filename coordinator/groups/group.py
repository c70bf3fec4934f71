"""What every group can be asked and told, whatever its protocol. Mirrors Kafka's ``Group`` interface."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, Protocol

from loadwise.coordinator.groups.effects import Effect
from loadwise.coordinator.groups.events import Committer, Event
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import Record
from loadwise.protocol.error_codes import ErrorCode


class _EveryTopic:
    def __contains__(self, topic: object) -> bool:
        return True


EVERY_TOPIC: Final[Container[str]] = _EveryTopic()
"""What a group reads whose subscriptions are not known."""


class Member(Protocol):
    """What every member of a group has."""

    @property
    def member_id(self) -> str:
        """Its id within the group."""

    @property
    def instance_id(self) -> str | None:
        """Its group instance id if it is a static member (KIP-345)."""

    @property
    def client_id(self) -> str:
        """The name that its client gives itself."""

    @property
    def client_host(self) -> str:
        """The address that it connects from."""


class Group(Protocol):
    """A group of any protocol. `handle` is the only way to change it, and one place calls it: `Groups`."""

    group_id: str

    @property
    def type(self) -> str:
        """The protocol as ListGroups calls it: ``classic``, ``consumer``, ``share`` or ``streams``."""

    @property
    def state(self) -> Enum:
        """The state; its value is the name that ListGroups gives."""

    @property
    def generation(self) -> int:
        """The generation of a classic group, the group epoch of a consumer group."""

    @property
    def protocol_type(self) -> str | None:
        """``consumer`` for consumers; None for a group that only keeps offsets."""

    @property
    def protocol_name(self) -> str | None:
        """The assignment protocol that was elected, or the assignor on the server's side; None if there is none."""

    @property
    def leader(self) -> str | None:
        """Member id of the member that assigns; None where nobody does."""

    @property
    def members(self) -> Mapping[str, Member]:
        """The members by id."""

    @property
    def num_members(self) -> int:
        """How many members there are, together with the ids that were given out and not used yet (KIP-394)."""

    @property
    def size_bytes(self) -> int:
        """Bytes of subscriptions and assignments that members brought, or nearly so."""

    @property
    def next_deadline_ms(self) -> int | None:
        """When a `Tick` is due at the latest; None while nothing can happen by time alone."""

    def assignment(self, member_id: str) -> Mapping[str, Sequence[int]] | None:
        """What a member may read, by topic name; None where its assignment is not one of Kafka's consumers."""

    def validate_offset_commit(self, who: Committer, partitions: Iterable[Partition]) -> ErrorCode:
        """Whether this client may commit offsets for these partitions now: for all of them, or for none."""

    def validate_offset_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether this client may read committed offsets; a client that names no member may."""

    def validate_offset_delete(self) -> ErrorCode:
        """Whether an administrator may delete offsets of topics that nobody subscribes to."""

    def expires_from_ms(self, committed: CommittedOffset) -> int | None:
        """From when on the retention of a committed offset counts; None while it does not."""

    def subscribed_topics(self) -> Container[str]:
        """The topics that members read; `EVERY_TOPIC` where subscriptions are not known. O(members): ask once."""

    def records(self) -> Sequence[Record]:
        """The records that rebuild it; what is under way in a rebalance is not in them."""

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Let an event take effect, then whatever is due at ``now_ms``."""

    def unload(self, error: ErrorCode, now_ms: int) -> list[Effect]:
        """Answer every client that waits with an error."""
