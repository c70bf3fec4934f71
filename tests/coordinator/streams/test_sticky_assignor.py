"""Which tasks members get, against the real StickyTaskAssignor: ``tests/golden/make_tasks.py`` asked it."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadwise.coordinator.streams.sticky_assignor import TaskClient, assign
from loadwise.coordinator.streams.topology import NO_TASKS, Task, Tasks

GOLDEN = Path(__file__).parents[2] / "golden" / "sticky-task-assignor-4.3.1.txt"


def told(tasks: frozenset[Task]) -> str:
    return ",".join(f"{subtopology}_{partition}" for subtopology, partition in sorted(tasks))


@pytest.mark.parametrize("case", GOLDEN.read_text().splitlines())
def test_members_get_what_kafka_gives_them(case: str) -> None:
    replicas, topology, changes, answers = case.split(";")
    rows = [row.split(":") for row in topology.split(",")]
    num_tasks = {part: int(count) for part, count, _ in rows}
    stateful = [part for part, _, kind in rows if kind == "s"]
    had: dict[str, Tasks] = {}
    for change, expected in zip(changes.split("|"), answers.split("|"), strict=True):
        members = dict(row.split("@") for row in change.split(" "))
        clients = {each: TaskClient(process, had.get(each, NO_TASKS)) for each, process in members.items()}
        had = assign(clients, num_tasks, stateful, int(replicas))
        got = " ".join(f"{each}={told(tasks.active)}/{told(tasks.standby)}" for each, tasks in sorted(had.items()))
        assert got == expected
