"""Moves a member to its target without a partition ever having two owners (KIP-848).

Mirrors Kafka's ``CurrentAssignmentBuilder``. First a member revokes partitions outside its target, and stays at its
epoch until it reports that (UNREVOKED_PARTITIONS). Then it advances to the target's epoch and gets the free partitions.
It waits for those that other members still hold (UNRELEASED_PARTITIONS).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import assert_never
from uuid import UUID

from loadwise.coordinator.groups.consumer_records import Epochs, MemberAssignment, MemberState, Partitions
from loadwise.coordinator.turns import Turns

_NONE: frozenset[int] = frozenset()
_NO_EPOCHS: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    """Everything that decides a member's next step."""

    target: Partitions
    target_epoch: int
    subscription_changed: bool
    """Whether the member has just changed its subscription."""
    owned: Mapping[UUID, Sequence[int]] | None
    """The partitions that the member reports; None if it reports none."""
    is_subscribed: Callable[[UUID], bool]
    """Whether the member subscribes to a topic."""
    is_free: Callable[[UUID, int], bool]
    """Whether no other member holds a partition."""

    def next(self, member: MemberAssignment) -> Turns[MemberAssignment]:
        """Return the member's next assignment, which may be unchanged."""
        match member.state:
            case MemberState.STABLE:
                if member.epoch != self.target_epoch:
                    return (yield from self._towards_target(member))
                return self._without_unsubscribed(member) if self.subscription_changed else member
            case MemberState.UNREVOKED_PARTITIONS:
                if self._owns_any(member.pending_revocation):
                    return self._without_unsubscribed(member) if self.subscription_changed else member
                return (yield from self._towards_target(member))
            case MemberState.UNRELEASED_PARTITIONS:
                return (yield from self._towards_target(member))
            case MemberState.UNKNOWN:
                # A member gets here only when it holds nothing.
                return (yield from self._towards_target(replace(member, epoch=self.target_epoch)))
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
        pending_revocation = dict(member.pending_revocation)
        for topic_id in gone:
            pending_revocation[topic_id] = {**pending_revocation.get(topic_id, {}), **member.assigned[topic_id]}
        if self._owns_any(pending_revocation):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, pending_revocation)
        return _moved(member, member.state, member.epoch, assigned, member.pending_revocation)

    def _towards_target(self, member: MemberAssignment) -> Turns[MemberAssignment]:
        # Kafka's set equations, for each topic: assigned = previous ∩ target, pending revocation = previous - target,
        # pending assignment = target - previous, if free.
        assigned: dict[UUID, dict[int, int]] = {}
        pending_revocation: dict[UUID, dict[int, int]] = {}
        pending_assignment: dict[UUID, list[int]] = {}
        has_unreleased = False
        for topic_id in chain(self.target, (each for each in member.assigned if each not in self.target)):
            target = self.target.get(topic_id, _NONE) if self.is_subscribed(topic_id) else _NONE
            previous = member.assigned.get(topic_id, _NO_EPOCHS)
            common = {number: epoch for number, epoch in previous.items() if number in target}
            if common:
                assigned[topic_id] = common
            if len(common) < len(previous):
                pending_revocation[topic_id] = {
                    number: epoch for number, epoch in previous.items() if number not in target
                }
            if len(common) < len(target):
                free = [number for number in target if number not in common and self.is_free(topic_id, number)]
                has_unreleased = has_unreleased or len(common) + len(free) < len(target)
                if free:
                    pending_assignment[topic_id] = free
            yield
        if pending_revocation and self._owns_any(pending_revocation):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, assigned, pending_revocation)
        for topic_id, free in pending_assignment.items():
            assigned.setdefault(topic_id, {}).update(dict.fromkeys(free, self.target_epoch))
            yield
        state = MemberState.UNRELEASED_PARTITIONS if has_unreleased else MemberState.STABLE
        return _moved(member, state, self.target_epoch, assigned, {})


def _moved(
    member: MemberAssignment, state: MemberState, epoch: int, assigned: Epochs, pending_revocation: Epochs
) -> MemberAssignment:
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
