"""Kafka's ``StickyTaskAssignor`` of streams groups, the only one in 4.3.

Members keep their active tasks up to their fair share. The other tasks go to members that had their state as standbys,
then to the processes with the fewest tasks per member. Standbys go to processes without the task. Ties are broken as in
Kafka, by the order of Java's hash maps and priority queues, so the same group gets the same tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from loadwise.coordinator.streams.topology import NO_TASKS, Task, Tasks


@dataclass(frozen=True, slots=True)
class TaskClient:
    """A member as the assignor gets it."""

    process_id: str
    previous: Tasks = NO_TASKS
    """Its previous target."""


def assign(
    members: Mapping[str, TaskClient], num_tasks: Mapping[str, int], stateful: Iterable[str], num_standby_replicas: int
) -> dict[str, Tasks]:
    """Return the tasks of each member, by id. O(tasks * (members + standbys)) at worst.

    ``num_tasks``: the number of tasks of each subtopology. ``stateful``: the subtopologies whose tasks have standbys.
    """
    if not members:
        return {}
    every = [Task(each, number) for each, count in num_tasks.items() for number in range(count)]
    with_state = set(stateful)
    standbys = [task for task in every if task.subtopology in with_state] if num_standby_replicas else []
    assignment = _Assignment(members, len(every), len(every) + len(standbys) * num_standby_replicas)
    assignment.assign_active(every)
    assignment.assign_standbys(standbys, num_standby_replicas)
    return assignment.result()


def _hash_map_order(keys: list[str], buckets: int = 16) -> list[str]:
    if len(keys) < 2:
        return keys
    # Imports numpy, which is optional.
    from loadwise.assignor.algorithms.sticky.uniform import hash_map_order  # noqa: PLC0415

    return [keys[index] for index in hash_map_order(keys, len(keys), buckets)]


@dataclass(slots=True)
class _Share:
    """The maximum number of tasks of a member, once some members have reached it."""

    tasks: int
    """Tasks of the members below the maximum."""
    members: int

    @property
    def most(self) -> int:
        return -(-self.tasks // self.members) if self.members else 0

    def count(self, tasks_of_member: int) -> None:
        """Note that a member has this many tasks."""
        if tasks_of_member == self.most:
            self.members -= 1
            self.tasks -= tasks_of_member


@dataclass(slots=True)
class _Process:
    counts: dict[str, int] = field(default_factory=dict)
    """Tasks of each member."""
    tasks: set[Task] = field(default_factory=set)
    num_tasks: int = 0
    _queue: _Queue | None = None
    """Its members, fewest tasks first; None once a member was given a task by name."""

    @property
    def load(self) -> float:
        return self.num_tasks / len(self.counts)

    def add(self, member_id: str, task: Task) -> int:
        self._queue = None
        return self._add(member_id, task)

    def add_to_least(self, task: Task) -> tuple[str, int]:
        """Give a task to the member with the fewest."""
        if self._queue is None:
            self._queue = _Queue((count, each) for each, count in self._in_order())
        _, member_id = self._queue.pop()
        count = self._add(member_id, task)
        self._queue.push((count, member_id))
        return member_id, count

    def _in_order(self) -> Iterator[tuple[str, int]]:
        return ((each, self.counts[each]) for each in _hash_map_order(list(self.counts)))

    def _add(self, member_id: str, task: Task) -> int:
        self.num_tasks += 1
        self.tasks.add(task)
        self.counts[member_id] += 1
        return self.counts[member_id]


class _Queue:
    """``java.util.PriorityQueue`` of loads and names; in a tie it returns what Java's would."""

    def __init__(self, items: Iterable[tuple[float, str]]) -> None:
        self._heap: list[tuple[float, str]] = []
        for item in items:
            self.push(item)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, item: tuple[float, str]) -> None:
        heap = self._heap
        heap.append(item)
        place = len(heap) - 1
        while place and item[0] < heap[(place - 1) // 2][0]:
            heap[place] = heap[(place - 1) // 2]
            place = (place - 1) // 2
        heap[place] = item

    def pop(self) -> tuple[float, str]:
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            place = 0
            while (child := 2 * place + 1) < len(heap):
                if child + 1 < len(heap) and heap[child + 1][0] < heap[child][0]:
                    child += 1
                if last[0] <= heap[child][0]:
                    break
                heap[place] = heap[child]
                place = child
            heap[place] = last
        return first


class _Assignment:
    def __init__(self, members: Mapping[str, TaskClient], num_active: int, num_tasks: int) -> None:
        self._members = members
        self._active_share = _Share(num_active, len(members))
        self._share = _Share(num_tasks, len(members))
        self._processes: dict[str, _Process] = {}
        self._had_active: dict[Task, str] = {}
        """The member that each active task was assigned to."""
        self._had_standby: dict[Task, list[str]] = {}
        self._active: dict[str, set[Task]] = {member_id: set() for member_id in members}
        self._standby: dict[str, set[Task]] = {member_id: set() for member_id in members}
        for member_id in _hash_map_order(list(members)):
            client = members[member_id]
            self._processes.setdefault(client.process_id, _Process()).counts[member_id] = 0
            self._had_active.update(dict.fromkeys(client.previous.active, member_id))
            for task in client.previous.standby:
                self._had_standby.setdefault(task, []).append(member_id)

    def result(self) -> dict[str, Tasks]:
        return {each: Tasks(frozenset(self._active[each]), frozenset(self._standby[each])) for each in self._members}

    def _process(self, member_id: str) -> _Process:
        return self._processes[self._members[member_id].process_id]

    def _count(self, member_id: str) -> int:
        return self._process(member_id).counts[member_id]

    def _by_load(self) -> _Queue:
        # Kafka's map has as many buckets as members, rounded up to a power of two.
        order = _hash_map_order(list(self._processes), 1 << (len(self._members) - 1).bit_length())
        return _Queue((self._processes[each].load, each) for each in order)

    # ---- active tasks ----

    def assign_active(self, tasks: list[Task]) -> None:
        left = []
        for task in sorted(tasks, key=_by_partition):
            had = self._had_active.get(task)
            if had is None or not self._give_active_again(had, task):
                left.append(task)
        without_state = []
        for task in left:
            had = self._least_loaded(self._had_standby.get(task, ()), None)
            if had is None or not self._give_active_again(had, task):
                without_state.append(task)
        queue = self._by_load()
        for task in sorted(without_state):
            _, process_id = queue.pop()
            process = self._processes[process_id]
            member_id, count = process.add_to_least(task)
            self._has_active(member_id, task, count)
            queue.push((process.load, process_id))

    def _give_active_again(self, member_id: str, task: Task) -> bool:
        if self._count(member_id) >= self._active_share.most:
            return False
        self._has_active(member_id, task, self._process(member_id).add(member_id, task))
        return True

    def _has_active(self, member_id: str, task: Task, count: int) -> None:
        self._active[member_id].add(task)
        self._active_share.count(count)
        self._share.count(count)

    # ---- standbys ----

    def assign_standbys(self, tasks: list[Task], replicas: int) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            for number in range(replicas):
                had_active = self._had_active.get(task)
                if had_active is not None and self._give_standby_again(had_active, task):
                    continue
                had_standby = self._least_loaded(self._had_standby.get(task, ()), task)
                if had_standby is not None and self._give_standby_again(had_standby, task):
                    continue
                left.append((task, replicas - number))
                break
        queue = self._by_load()
        for task, number in sorted(left, reverse=True):
            for _ in range(number):
                if not self._give_standby_to_least(queue, task):
                    break  # too few processes

    def _give_standby_again(self, member_id: str, task: Task) -> bool:
        process = self._process(member_id)
        if task in process.tasks or process.counts[member_id] >= self._share.most:
            return False
        self._has_standby(member_id, task, process.add(member_id, task))
        return True

    def _give_standby_to_least(self, queue: _Queue, task: Task) -> bool:
        passed_over = []
        found = False
        while queue and not found:
            _, process_id = queue.pop()
            passed_over.append(process_id)
            process = self._processes[process_id]
            if task not in process.tasks:
                member_id, count = process.add_to_least(task)
                self._has_standby(member_id, task, count)
                found = True
        for process_id in reversed(passed_over):
            queue.push((self._processes[process_id].load, process_id))
        return found

    def _has_standby(self, member_id: str, task: Task, count: int) -> None:
        self._standby[member_id].add(task)
        self._share.count(count)

    def _least_loaded(self, member_ids: Iterable[str], task: Task | None) -> str | None:
        """Return the least loaded previous standby of a task; None if its process has the task.

        As in Kafka, only the first of them is checked.
        """
        first = found = None
        least = (0.0, 0)
        for member_id in member_ids:
            process = self._process(member_id)
            load, count = process.load, process.counts[member_id]
            if first is None:
                first, found, least = process, member_id, (load, count)
            elif load < least[0] and (task is None or task not in process.tasks) and count < least[1]:
                found, least = member_id, (load, count)
        return None if first is None or (task is not None and task in first.tasks) else found


def _by_partition(task: Task) -> tuple[int, str]:
    return task.partition, task.subtopology
