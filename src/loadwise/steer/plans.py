"""Makes a plan of a group's load. Pure: readings come in with their times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from loadwise.assignor.algorithms.weighted import Weighted
from loadwise.assignor.group_history import GroupHistory
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.events import Asked, Assigned, Read
from loadwise.assignor.live.history import Recorder
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.live.watch import GroupWatch
from loadwise.assignor.model import NOBODY, RECORDS_PER_S, Assignment, GroupSnapshot
from loadwise.protocol.steering_note import UNOWNED, Plan, name_hash, scaled
from loadwise.running_group.members import GroupReading
from loadwise.watch.group import assignment, owned_by, positions


class Planner:
    """The load of one group, and when it justifies another plan."""

    def __init__(self, settings: LiveSettings, *, from_beginning: bool) -> None:
        self._algorithm = Weighted()
        self._watch = GroupWatch(settings, self._algorithm, cooperative=True, slack_s=None)
        self._recorder = Recorder(self._watch)
        self._from_beginning = from_beginning
        self._owned: Mapping[str, Mapping[str, Sequence[int]]] | None = None
        self._since_ms = 0
        self._commits = CommitAges()

    def read(self, reading: GroupReading) -> Decision | None:
        """Judge a reading; None if there is nothing to judge."""
        now_ms = round(1000 * reading.at_s)
        owned = owned_by(reading)
        if owned != self._owned:
            duration_ms = now_ms - self._since_ms if self._since_ms else 0
            self._owned, self._since_ms = owned, 0
            self._recorder.handle(
                Assigned(at_ms=now_ms, target=assignment(reading), generation=0, duration_ms=duration_ms)
            )
        age_s = self._commits.read(reading)
        read = positions(reading, from_beginning=self._from_beginning, age_s=age_s)
        columns = np.array(list(read.values()), np.float64).reshape(-1, 4)
        return self._recorder.handle(Read(at_ms=now_ms, partitions=list(read), positions=columns))

    def history(self) -> GroupHistory:
        """Return the newest readings and decisions: 200 readings, or fewer in 8 MB."""
        return GroupHistory.of(self._recorder.history())

    def plan(self, reading: GroupReading, ids: Mapping[str, bytes]) -> Plan:
        """Return the plan for the newest reading; ``ids`` has the id of each topic."""
        now_ms = round(1000 * reading.at_s)
        members = [each.member for each in reading.group.members]
        rows = self._watch.knowledge.capacities(members, dict.fromkeys((member.id for member in members), 0.0), now_ms)
        known = {topic: load for topic, load in self._watch.loads().items() if topic in reading.partitions}
        group = GroupSnapshot.of(rows, reading.partitions, load=known, load_unit=RECORDS_PER_S)
        group = replace(group, even_up_to=self._watch.even_up_to(now_ms, asking=True))
        return plan_of(self._algorithm.assign(group), ids)

    def sent(self, reading: GroupReading) -> None:
        """Take in that the plan for this reading was sent."""
        self._since_ms = round(1000 * reading.at_s)
        self._recorder.handle(Asked(at_ms=self._since_ms))


class CommitAges:
    """How old each partition's commit is at most: it was made after the last reading that lacked it."""

    def __init__(self) -> None:
        self._committed: dict[tuple[str, int], tuple[int | None, float]] = {}
        self._read_s = -math.inf

    def read(self, reading: GroupReading) -> list[float]:
        """Take in a reading; return the age of each partition's commit in seconds, infinite if unknown."""
        before, since_s = self._committed, self._read_s
        self._committed = {}
        for partition, at in reading.offsets.items():
            committed, made_s = before.get(partition, (at.committed, -math.inf))
            self._committed[partition] = at.committed, made_s if at.committed == committed else since_s
        self._read_s = reading.at_s
        return [reading.at_s - made_s for _, made_s in self._committed.values()]


def plan_of(target: Assignment, ids: Mapping[str, bytes], epoch: int = 0) -> Plan:
    """Return an assignment as a plan."""
    group = target.group
    hashes = [name_hash(*each) for each in zip(group.members, group.instance_ids, strict=True)]
    capacities = dict(sorted(zip(hashes, scaled(group.capacity.tolist()), strict=True)))
    place = {name: number for number, name in enumerate(capacities)}
    places = [place[name] for name in hashes]
    weight = scaled(np.ones(group.size) if group.load is None else np.nan_to_num(group.load, nan=0.0))
    partitions: dict[bytes, int] = {}
    owners: list[int] = []
    weights: list[int] = []
    for topic_id, number in sorted((ids[topic], number) for number, topic in enumerate(group.topics)):
        start, stop = group.topic_start[number : number + 2].tolist()
        partitions[topic_id] = stop - start
        owners += [UNOWNED if owner == NOBODY else places[owner] for owner in target.owner[start:stop].tolist()]
        weights += weight[start:stop]
    return Plan(epoch=epoch, capacities=capacities, partitions=partitions, owners=owners, weights=weights)
