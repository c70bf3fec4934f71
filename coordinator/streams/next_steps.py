"""The targets of a streams group, and one member's next step.

Mirrors Kafka's ``TargetAssignmentBuilder`` of streams groups, and ``maybeReconcile``.
"""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.streams.configured_topology import ConfiguredTopology
from loadwise.coordinator.streams.reconciliation import TaskReconciliation
from loadwise.coordinator.streams.records import StreamsMemberAssignment, StreamsTarget
from loadwise.coordinator.streams.state import StreamsMember, StreamsState
from loadwise.coordinator.streams.sticky_assignor import TaskClient, assign
from loadwise.coordinator.streams.topology import NO_TASKS, Task, Tasks


def new_target(state: StreamsState, configured: ConfiguredTopology, now_ms: int) -> StreamsTarget:
    """Return all members' targets at the group's epoch; empty while topics do not match."""
    tasks = dict.fromkeys(state.members, NO_TASKS)
    if configured.is_ready:
        before = state.target.tasks
        clients = {
            each: TaskClient(member.metadata.process_id, before.get(each, NO_TASKS))
            for each, member in state.members.items()
        }
        stateful = [each.id for each in configured.subtopologies if each.is_stateful]
        tasks = assign(clients, configured.num_tasks, stateful, state.group.num_standby_replicas or 0)
    return StreamsTarget(group_id=state.group_id, epoch=state.epoch, tasks=tasks, at_ms=now_ms)


def next_assignment(
    state: StreamsState, member: StreamsMember, target: Tasks, owned: Tasks | None
) -> StreamsMemberAssignment:
    """Return a member's next assignment, which may be unchanged; ``owned`` as in `TaskReconciliation`."""
    process_id = member.metadata.process_id

    def are_of_others(member_ids: Iterable[str]) -> bool:
        return all(state.members[each].metadata.process_id != process_id for each in member_ids)

    def is_elsewhere(task: Task) -> bool:
        return all(map(are_of_others, state.holders.of(task)))

    def is_unowned(task: Task) -> bool:
        active, *_ = state.holders.of(task)
        return not active and is_elsewhere(task)

    return TaskReconciliation(
        target=target,
        target_epoch=state.target.epoch,
        owned=owned,
        is_unowned=is_unowned,
        is_elsewhere=is_elsewhere,
    ).next(member.current)
