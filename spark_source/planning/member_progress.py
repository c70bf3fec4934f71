"""How far a stream has got that is a member of a group, and what it reads next (``assignment.mode=member``).

The group hands partitions out, and takes them away again; its commits are what its members agree on. A checkpoint is
what Spark goes on from. This module brings the two together, by one rule: **a micro-batch begins in each partition
where the group's commit stands, and the coordinator has acknowledged that commit before the micro-batch is planned.**
So what is committed was processed, and what comes twice after a member was put out, or killed, is at most what it had
processed and not committed: the micro-batch in flight.

::

    Holdings.given_back   Spark gives back an end offset: that micro-batch is processed, and may be committed
    Holdings.to_commit    what to commit now; Holdings.acknowledged: what the coordinator has taken
    Holdings.lost         these partitions belong to others now, or will in a moment
    Holdings.gained       these were assigned: go on at the group's commit, or at the checkpoint where both agree
    Holdings.next_offset  where the next micro-batch ends, and where it begins in each partition that it reads

Positions of partitions that the stream does not own stay in its offset: nobody has lost them. Pure: Kafka's answers
come in as arguments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.planning.progress import MEMBER, MODE, Positions, from_json, limited, to_json
from loadwise.spark_source.task import OffsetRange

VERSION = 1
"""Of the form of an offset in a checkpoint."""


@dataclass(frozen=True, slots=True)
class MemberOffset:
    """The end of a micro-batch, as a checkpoint keeps it: enough to read the micro-batch again without the group."""

    group: str
    positions: Positions = field(default_factory=dict)
    """The next offset of every partition that the stream knows, whoever owns it."""
    begins: Positions = field(default_factory=dict)
    """Where this micro-batch begins in each partition that it reads; it ends at the position."""
    committed: Positions = field(default_factory=dict)
    """What the stream last committed of a partition that it lost before its position could be committed."""
    generation: int = -1
    """The group's generation that the micro-batch was planned in, for those who look at a checkpoint."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic (KIP-516) that the positions are in, where the broker gives one."""

    def ranges(self) -> tuple[OffsetRange, ...]:
        """What the micro-batch reads, by topic and partition."""
        return tuple(OffsetRange(*place, begin, self.positions[place]) for place, begin in sorted(self.begins.items()))

    def last_committed(self, place: TopicPartition) -> int | None:
        """What the stream had last committed of a partition when this was written; None where it does not know it."""
        known = self.committed.get(place, self.begins.get(place))
        return self.positions.get(place) if known is None else known


def member_offset(offset: Mapping[str, Any], group: str) -> MemberOffset:
    """An offset out of a checkpoint. Raises `OptionError` for one of another mode, form or group."""
    if offset.get(MODE) != MEMBER:
        raise OptionError(
            MODE,
            "this checkpoint belongs to a stream that is no member of a group (format('kafka'), or another"
            " assignment.mode), whose offsets tell nothing of a group's commits; use a new checkpointLocation: the"
            f" stream goes on where group {group} stands, and at startingOffsets (latest by default) in partitions that"
            " the group has no commit of",
        )
    if offset["version"] != VERSION:
        raise OptionError(
            MODE, f"this checkpoint has version {offset['version']}, and this loadwise reads {VERSION}; upgrade it"
        )
    if offset["group"] != group:
        raise OptionError(
            "kafka.group.id",
            f"this checkpoint belongs to a member of group {offset['group']!r}, not {group!r}; give that group, or"
            " another checkpointLocation: the stream goes on where the new group stands, and at startingOffsets (latest"
            " by default) in partitions that it has no commit of",
        )
    return MemberOffset(
        group,
        positions=from_json(offset["positions"]),
        begins=from_json(offset["begins"]),
        committed=from_json(offset["committed"]),
        generation=offset["generation"],
        ids=offset.get("topic_ids", {}),
    )


def as_json(offset: MemberOffset) -> dict[str, Any]:
    """An offset as a checkpoint has it. Spark's Kafka source fails at it, and shows it: it must not go on from it."""
    return {
        MODE: MEMBER,
        "group": offset.group,
        "version": VERSION,
        "generation": offset.generation,
        "positions": to_json(offset.positions),
        "begins": to_json(offset.begins),
        "committed": to_json(offset.committed),
        "topic_ids": dict(sorted(offset.ids.items())),
    }


def apart(offset: MemberOffset, same: Positions, ids: Mapping[str, str]) -> MemberOffset:
    """An offset that reads nothing, and knows no other positions than these, in topics with these ids."""
    last = {place: own for place in same if (own := offset.last_committed(place)) is not None}
    committed = {place: own for place, own in last.items() if own != same[place]}
    return MemberOffset(offset.group, same, committed=committed, generation=offset.generation, ids=ids)


@dataclass(frozen=True, slots=True)
class Jump:
    """The stream goes on elsewhere than where it stood: others have committed in the meantime."""

    place: TopicPartition
    stood: int
    commit: int

    def __str__(self) -> str:
        way = "forward" if self.commit > self.stood else "back"
        return f"{self.place.topic}-{self.place.partition} from {self.stood} {way} to the group's commit {self.commit}"


class Holdings:
    """The partitions that one process of a stream holds, and what the group has committed of them."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        """Where each owned partition is read on."""
        self._new: dict[TopicPartition, int] = {}
        """Owned ones that neither the checkpoint nor the group knows; read once Spark has written down where."""
        self._told: dict[TopicPartition, int] = {}
        """What the stream knows to be its own last commit of a partition, or the group's when it gained it."""
        self._reading: dict[TopicPartition, int] = {}
        """Where the micro-batch that was answered last ends in each partition that it reads and that is still held."""
        self._answered: MemberOffset | None = None

    @property
    def held(self) -> Positions:
        """Where each owned partition is read on."""
        return self._held

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """All owned partitions."""
        return frozenset((*self._held, *self._new))

    def given_back(self, start: MemberOffset) -> None:
        """Spark asks for what comes behind ``start``: it has processed all up to there."""
        if start == self._answered:
            self._held |= self._reading
        self._answered, self._reading = None, {}
        for place in [place for place in self._new if place in start.positions]:
            del self._new[place]
            self._held[place] = start.positions[place]

    def to_commit(self) -> dict[TopicPartition, int]:
        """What the group has still to be told."""
        return {place: at for place, at in self._held.items() if self._told.get(place) != at}

    def acknowledged(self, offsets: Positions) -> None:
        """The coordinator has taken these."""
        self._told |= offsets

    def lost(self, places: Collection[TopicPartition]) -> None:
        """These are owned no more. What is being read of them is neither committed nor read on."""
        for place in places:
            for kept in (self._held, self._new, self._reading):
                kept.pop(place, None)

    def gained(
        self, start: MemberOffset, commits: Mapping[TopicPartition, int | None], firsts: Positions
    ) -> tuple[Jump, ...]:
        """Take partitions up, with the group's commit of each (None: it has none), and answer the jumps.

        Where the group's commit is the stream's own last one, or where the stream stands, nobody has read on since:
        then the stream goes on where it stands. Otherwise the commit wins, in either direction. ``firsts`` are the
        first offsets of those that neither knows.
        """
        jumps = []
        for place, commit in commits.items():
            stood = start.positions.get(place)
            own = self._told.pop(place, start.last_committed(place))
            if commit is None:
                if stood is None:
                    self._new[place] = firsts[place]
                else:
                    self._held[place] = stood
                continue
            self._told[place] = commit
            if stood is None or commit in (own, stood):
                self._held[place] = commit if stood is None else stood
            else:
                self._held[place] = commit
                jumps.append(Jump(place, stood, commit))
        return tuple(jumps)

    def moved(self, positions: Positions) -> None:
        """Go on here in partitions of a topic that was made anew; Kafka has forgotten the group's commits of them."""
        self._held |= positions
        for place in positions:
            self._told.pop(place, None)

    def next_offset(
        self, start: MemberOffset, ends: Positions, *, most: int | None = None, generation: int = -1
    ) -> MemberOffset:
        """The end of the micro-batch behind ``start``; ``start`` itself where there is nothing to read or write down.

        ``ends`` are where the partitions end; those that are not held, or whose commit is not acknowledged, are left
        out. ``most`` is ``maxOffsetsPerTrigger``.
        """
        waiting = self.to_commit()
        ready = {place: at for place, at in self._held.items() if place in ends and place not in waiting}
        mine = {place: max(ends[place], at) for place, at in ready.items()}
        if most is not None:
            mine = limited(ready, mine, {}, most)
        begins = {place: at for place, at in ready.items() if mine[place] > at}
        if not begins and not self._new:
            return start
        positions = {**start.positions, **self._new, **ready, **{place: mine[place] for place in begins}}
        committed = {
            place: own
            for place, at in positions.items()
            if place not in ready
            and place not in self._new
            and (own := self._told.get(place, start.last_committed(place))) is not None
            and own != at
        }
        answer = MemberOffset(
            start.group,
            dict(sorted(positions.items())),
            dict(sorted(begins.items())),
            dict(sorted(committed.items())),
            generation,
            start.ids,
        )
        self._answered, self._reading = answer, {place: mine[place] for place in begins}
        return answer
