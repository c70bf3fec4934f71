"""How a member gets from what it has to its target, without a partition ever having two owners (KIP-848).

Mirrors Kafka's ``CurrentAssignmentBuilder``: first a member gives up what is not in its target, and stays at its epoch
until it says that it has (UNREVOKED_PARTITIONS); then it goes on to the target's epoch and gets what is free; for what
others still hold it waits (UNRELEASED_PARTITIONS).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Epochs, MemberAssignment, MemberState, Partitions

_NONE: frozenset[int] = frozenset()
_NO_EPOCHS: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """All that decides a member's next step."""

    target: Partitions
    target_epoch: int
    subscription_changed: bool
    """Whether the member has just changed what it subscribes to."""
    owned: Mapping[UUID, Sequence[int]] | None
    """What the member says it holds; None if it does not say."""
    is_subscribed: Callable[[UUID], bool]
    """Whether the member subscribes to a topic."""
    is_free: Callable[[UUID, int], bool]
    """Whether a partition is held by nobody, or by this member."""

    def next(self, member: MemberAssignment) -> MemberAssignment:
        """The member's next assignment, which may be the same."""
        match member.state:
            case MemberState.STABLE:
                if member.epoch != self.target_epoch:
                    return self._towards_target(member)
                return self._without_unsubscribed(member) if self.subscription_changed else member
            case MemberState.UNREVOKED_PARTITIONS:
                if self._owns_any(member.revoking):
                    return self._without_unsubscribed(member) if self.subscription_changed else member
                return self._towards_target(member)
            case MemberState.UNRELEASED_PARTITIONS:
                return self._towards_target(member)
            case MemberState.UNKNOWN:
                # The group lets it come here only when it holds nothing any more.
                return self._towards_target(replace(member, epoch=self.target_epoch))
            case _:
                assert_never(member.state)

    def _owns_any(self, partitions: Epochs) -> bool:
        if self.owned is None:
            return True
        return any(
            number in partitions.get(topic_id, _NO_EPOCHS)
            for topic_id, numbers in self.owned.items()
            for number in numbers
        )

    def _without_unsubscribed(self, member: MemberAssignment) -> MemberAssignment:
        gone = {topic_id for topic_id in member.assigned if not self.is_subscribed(topic_id)}
        if not gone:
            return member
        assigned = {topic_id: each for topic_id, each in member.assigned.items() if topic_id not in gone}
        revoking = dict(member.revoking)
        for topic_id in gone:
            revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
        if self._owns_any(revoking):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, revoking)
        return _moved(member, member.state, member.epoch, assigned, member.revoking)

    def _towards_target(self, member: MemberAssignment) -> MemberAssignment:
        assigned: dict[UUID, dict[int, int]] = {}
        revoking: dict[UUID, dict[int, int]] = {}
        gained: dict[UUID, list[int]] = {}
        waits = False
        for topic_id in self.target.keys() | member.assigned.keys():
            target = self.target.get(topic_id, _NONE) if self.is_subscribed(topic_id) else _NONE
            has = member.assigned.get(topic_id, _NO_EPOCHS)
            kept = {number: epoch for number, epoch in has.items() if number in target}
            if kept:
                assigned[topic_id] = kept
            if len(kept) < len(has):
                revoking[topic_id] = {number: epoch for number, epoch in has.items() if number not in target}
            if len(kept) < len(target):
                free = [number for number in target if number not in kept and self.is_free(topic_id, number)]
                waits = waits or len(kept) + len(free) < len(target)
                if free:
                    gained[topic_id] = free
        if revoking and self._owns_any(revoking):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, revoking)
        for topic_id, free in gained.items():
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(free, self.target_epoch))
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return _moved(member, state, self.target_epoch, assigned, {})


def _moved(
    member: MemberAssignment, state: MemberState, epoch: int, assigned: Epochs, revoking: Epochs
) -> MemberAssignment:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, state=state, assigned=assigned, revoking=revoking)
