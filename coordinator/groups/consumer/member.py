"""A member of a consumer group, with subscription and assignment. Mirrors ``ConsumerGroupMember``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import MemberAssignment, MemberState, MemberSubscription


@dataclass(slots=True)
class ConsumerMember:
    """One member; both parts are records, and each is replaced as a whole."""

    subscription: MemberSubscription
    current: MemberAssignment

    @classmethod
    def new(cls, group_id: str, member_id: str) -> Self:
        """Return a member without a subscription."""
        return cls(
            MemberSubscription(group_id=group_id, member_id=member_id),
            MemberAssignment(group_id=group_id, member_id=member_id),
        )

    @property
    def member_id(self) -> str:
        """Return its id."""
        return self.current.member_id

    @property
    def instance_id(self) -> str | None:
        """Return its group instance id, if it is static (KIP-345)."""
        return self.subscription.instance_id

    @property
    def client_id(self) -> str:
        """Return its client id."""
        return self.subscription.client_id

    @property
    def client_host(self) -> str:
        """Return its client's address."""
        return self.subscription.client_host

    @property
    def is_classic(self) -> bool:
        """Return whether it uses the classic protocol."""
        return self.subscription.classic is not None

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has its whole target of this epoch."""
        return self.current.state is MemberState.STABLE and self.current.epoch == epoch

    def holds_all(self, owned: Mapping[UUID, Sequence[int]] | None) -> bool:
        """Return whether it is assigned all these partitions; False for None."""
        if owned is None:
            return False
        nothing: Mapping[int, int] = {}
        return all(
            number in self.current.assigned.get(topic_id, nothing)
            for topic_id, numbers in owned.items()
            for number in numbers
        )

    def assignment_epoch(self, topic_id: UUID | None, number: int, otherwise: int) -> int:
        """Return the member epoch at which it got a partition that it still holds, or ``otherwise``."""
        nothing: Mapping[int, int] = {}
        if topic_id is None:
            return otherwise
        for part in (self.current.assigned, self.current.pending_revocation):
            epoch = part.get(topic_id, nothing).get(number)
            if epoch is not None:
                return epoch
        return otherwise

    def held(self) -> dict[UUID, set[int]]:
        """Return the partitions that it has or must still revoke, by topic id."""
        held = {topic_id: set(numbers) for topic_id, numbers in self.current.assigned.items()}
        for topic_id, numbers in self.current.pending_revocation.items():
            held.setdefault(topic_id, set()).update(numbers)
        return held
