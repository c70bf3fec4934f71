"""A member of a consumer group: its subscription, and its assignment. Mirrors Kafka's ``ConsumerGroupMember``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import MemberAssignment, MemberState, MemberSubscription


@dataclass(slots=True)
class ConsumerMember:
    """One member; both halves are records, and each is replaced as a whole."""

    subscription: MemberSubscription
    current: MemberAssignment

    @classmethod
    def new(cls, group_id: str, member_id: str) -> Self:
        """A member that has not subscribed to anything yet."""
        return cls(
            MemberSubscription(group_id=group_id, member_id=member_id),
            MemberAssignment(group_id=group_id, member_id=member_id),
        )

    @property
    def member_id(self) -> str:
        """Its id."""
        return self.current.member_id

    @property
    def instance_id(self) -> str | None:
        """Its group instance id, if it is static (KIP-345)."""
        return self.subscription.instance_id

    @property
    def client_id(self) -> str:
        """The name that its client gives itself."""
        return self.subscription.client_id

    @property
    def client_host(self) -> str:
        """The address that it connects from."""
        return self.subscription.client_host

    @property
    def is_classic(self) -> bool:
        """Whether it speaks the classic protocol."""
        return self.subscription.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it has its whole target of this epoch."""
        return self.current.state is MemberState.STABLE and self.current.epoch == epoch

    def holds_all(self, owned: Mapping[UUID, Sequence[int]] | None) -> bool:
        """Whether it is assigned all these partitions; None is not known to be."""
        if owned is None:
            return False
        nothing: Mapping[int, int] = {}
        return all(
            number in self.current.assigned.get(topic_id, nothing)
            for topic_id, numbers in owned.items()
            for number in numbers
        )

    def assignment_epoch(self, topic_id: UUID | None, number: int, otherwise: int) -> int:
        """The member's epoch when it was assigned a partition that it has, or has not given up; or another number."""
        nothing: Mapping[int, int] = {}
        if topic_id is None:
            return otherwise
        for part in (self.current.assigned, self.current.pending_revocation):
            epoch = part.get(topic_id, nothing).get(number)
            if epoch is not None:
                return epoch
        return otherwise

    def held(self) -> dict[UUID, set[int]]:
        """What it has, and what it has not given up yet, by topic id."""
        held: dict[UUID, set[int]] = {}
        for part in (self.current.assigned, self.current.pending_revocation):
            for topic_id, numbers in part.items():
                held.setdefault(topic_id, set()).update(numbers)
        return held
