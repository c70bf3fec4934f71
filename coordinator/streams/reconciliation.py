"""Moves a member to its target without a task ever having two active owners.

Mirrors Kafka's ``CurrentAssignmentBuilder`` of streams groups. First a member revokes tasks outside its target, and
stays at its epoch until it reports that (UNREVOKED_TASKS). Then it advances to the target's epoch and gets the free
tasks. It waits for those that other members still hold (UNRELEASED_TASKS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from loadwise.coordinator.streams.records import StreamsMemberAssignment, StreamsMemberState
from loadwise.coordinator.streams.topology import NO_TASKS, Task, Tasks, by_subtopology


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReconciliation:
    """Everything that decides a member's next step."""

    target: Tasks
    target_epoch: int
    owned: Tasks | None
    """The tasks that the member reports; None if it reports none."""
    is_unowned: Callable[[Task], bool]
    """Whether a task has no active owner, and this member's process does not have it in any role."""
    is_elsewhere: Callable[[Task], bool]
    """Whether this member's process does not have a task in any role."""

    def next(self, member: StreamsMemberAssignment) -> StreamsMemberAssignment:
        """Return the member's next assignment, which may be unchanged."""
        match member.state:
            case StreamsMemberState.STABLE if member.epoch == self.target_epoch:
                return member
            case StreamsMemberState.UNREVOKED_TASKS:
                if self._has_any(member.pending_revocation):
                    return member
                return self._towards_target(member, member.epoch + 1)
            case _:
                return self._towards_target(member, member.epoch)

    def _has_any(self, tasks: Tasks) -> bool:
        return self.owned is None or bool(self.owned & tasks)

    def _towards_target(self, member: StreamsMemberAssignment, epoch: int) -> StreamsMemberAssignment:
        kept = member.assigned & self.target
        to_revoke = member.assigned - self.target
        if to_revoke and self._has_any(to_revoke):
            return self._moved(member, epoch, StreamsMemberState.UNREVOKED_TASKS, kept, to_revoke)
        missing = self.target - kept
        free = Tasks(
            frozenset(filter(self.is_unowned, missing.active)),
            frozenset(filter(self.is_elsewhere, missing.standby)),
            frozenset(filter(self.is_elsewhere, missing.warmup)),
        )
        state = StreamsMemberState.STABLE if free == missing else StreamsMemberState.UNRELEASED_TASKS
        return self._moved(member, self.target_epoch, state, kept | free, NO_TASKS)

    def _moved(
        self,
        member: StreamsMemberAssignment,
        epoch: int,
        state: StreamsMemberState,
        assigned: Tasks,
        pending_revocation: Tasks,
    ) -> StreamsMemberAssignment:
        epochs = {
            subtopology: {
                partition: self.target_epoch if since is None else since
                for partition in partitions
                for since in (member.assignment_epoch(Task(subtopology, partition)),)
            }
            for subtopology, partitions in by_subtopology(assigned.active | pending_revocation.active).items()
        }
        return replace(
            member,
            epoch=epoch,
            previous_epoch=member.epoch,
            state=state,
            assigned=assigned,
            pending_revocation=pending_revocation,
            epochs=epochs,
        )
