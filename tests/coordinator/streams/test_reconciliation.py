"""A member waits for tasks that its own process still has, by the rules of Kafka's ``CurrentAssignmentBuilder``."""

from __future__ import annotations

from loadwise.coordinator.streams.reconciliation import TaskReconciliation
from loadwise.coordinator.streams.records import StreamsMemberAssignment, StreamsMemberState
from loadwise.coordinator.streams.topology import Task, Tasks

FREE, HELD = Task("0", 0), Task("0", 1)


def test_a_standby_waits_until_its_process_has_given_the_task_up() -> None:
    """Two threads of one process share a folder of states: no two of them may have the same task."""
    target = Tasks(standby=frozenset({FREE, HELD}))
    held = {HELD}

    def step(member: StreamsMemberAssignment) -> StreamsMemberAssignment:
        reconciliation = TaskReconciliation(
            target=target,
            target_epoch=5,
            owned=Tasks(),
            is_unowned=lambda _: True,
            is_elsewhere=lambda task: task not in held,
        )
        return reconciliation.next(member)

    waiting = step(StreamsMemberAssignment(group_id="g", member_id="m", epoch=4))
    assert (waiting.epoch, waiting.state) == (5, StreamsMemberState.UNRELEASED_TASKS)
    assert waiting.assigned == Tasks(standby=frozenset({FREE}))
    held.clear()
    complete = step(waiting)
    assert (complete.epoch, complete.state, complete.assigned) == (5, StreamsMemberState.STABLE, target)
