"""The progress of a stream that is a member of a group, and its next micro-batch (``assignment.mode=member``).

The group assigns and revokes partitions, and its commits are what all members share. Spark continues from a checkpoint.
This module reconciles the two by one rule: **in each partition a micro-batch begins at the group's commit, and the
coordinator has acknowledged that commit before the micro-batch is planned.** So committed records were processed. If a
member is evicted or killed, at most its processed but uncommitted records come twice: the micro-batch in flight.

::

    Holdings.given_back   Spark passes back an end offset: that micro-batch is processed, and may be committed
    Holdings.to_commit    what to commit now; Holdings.acknowledged: what the coordinator has accepted
    Holdings.lost         these partitions belong to others now, or soon will
    Holdings.gained       these were assigned: continue at the group's commit, or at the checkpoint if both agree
    Holdings.next_offset  where the next micro-batch ends, and where it begins in each of its partitions

The offset keeps positions of partitions that the stream does not own. Pure: Kafka's answers are arguments.
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
"""The version of offsets in a checkpoint."""


@dataclass(frozen=True, slots=True)
class MemberOffset:
    """The end of a micro-batch in a checkpoint: enough to read the micro-batch again without the group."""

    group: str
    positions: Positions = field(default_factory=dict)
    """The next offset of every partition that the stream knows, with any owner."""
    begins: Positions = field(default_factory=dict)
    """Where this micro-batch begins in each of its partitions; it ends at the position."""
    committed: Positions = field(default_factory=dict)
    """The stream's last commit of a partition that it lost before its position could be committed."""
    generation: int = -1
    """The group's generation when the micro-batch was planned, for people who read a checkpoint."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic (KIP-516), where the broker has one."""

    def ranges(self) -> tuple[OffsetRange, ...]:
        """Return the ranges of the micro-batch, by topic and partition."""
        return tuple(OffsetRange(*place, begin, self.positions[place]) for place, begin in sorted(self.begins.items()))

    def last_committed(self, place: TopicPartition) -> int | None:
        """Return the stream's last commit of a partition at the time of this offset; None if it has none."""
        known = self.committed.get(place, self.begins.get(place))
        return self.positions.get(place) if known is None else known


def member_offset(offset: Mapping[str, Any], group: str) -> MemberOffset:
    """Read an offset of a checkpoint. Raises `OptionError` for another mode, version or group."""
    if offset.get(MODE) != MEMBER:
        raise OptionError(
            MODE,
            "this checkpoint belongs to a stream that is not a member of a group (format('kafka'), or another"
            " assignment.mode), so it has no commits of a group; use a new checkpointLocation: the stream continues at"
            f" the commits of group {group}, and at startingOffsets (latest by default) in partitions without a commit",
        )
    if offset["version"] != VERSION:
        raise OptionError(
            MODE, f"this checkpoint has version {offset['version']}, but this loadwise reads {VERSION}; upgrade it"
        )
    if offset["group"] != group:
        raise OptionError(
            "kafka.group.id",
            f"this checkpoint belongs to a member of group {offset['group']!r}, not {group!r}; give that group, or"
            " another checkpointLocation: the stream continues at the commits of the new group, and at startingOffsets"
            " (latest by default) in partitions without a commit",
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
    """Return an offset as a checkpoint has it. Spark's Kafka source refuses it, because it must not continue there."""
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
    """Return an offset that reads nothing and has only these positions, in topics with these ids."""
    last = {place: own for place in same if (own := offset.last_committed(place)) is not None}
    committed = {place: own for place, own in last.items() if own != same[place]}
    return MemberOffset(offset.group, same, committed=committed, generation=offset.generation, ids=ids)


@dataclass(frozen=True, slots=True)
class Jump:
    """The stream continues at another offset than its own, because others have committed meanwhile."""

    place: TopicPartition
    stood: int
    commit: int

    def __str__(self) -> str:
        way = "forward" if self.commit > self.stood else "back"
        return f"{self.place.topic}-{self.place.partition} from {self.stood} {way} to the group's commit {self.commit}"


class Holdings:
    """The partitions that one process of a stream owns, and the group's commits of them."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        """The next offset of each owned partition."""
        self._new: dict[TopicPartition, int] = {}
        """Owned partitions without a position or a commit; read once Spark has stored their start."""
        self._committed: dict[TopicPartition, int] = {}
        """The stream's own last commit of a partition, or the group's when the stream gained it."""
        self._reading: dict[TopicPartition, int] = {}
        """The end of the last answered micro-batch in each of its partitions that is still owned."""
        self._jumped: dict[TopicPartition, int] = {}
        """Where the group's commit has won over the checkpoint, until Spark stores that position."""
        self._answered: MemberOffset | None = None

    @property
    def held(self) -> Positions:
        """The next offset of each owned partition."""
        return self._held

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """All owned partitions."""
        return frozenset((*self._held, *self._new))

    def given_back(self, start: MemberOffset) -> None:
        """Note that Spark has processed everything up to ``start``, because it asks for more."""
        if start == self._answered:
            self._held |= self._reading
            self._jumped.clear()
        self._answered, self._reading = None, {}
        for place in [place for place in self._new if place in start.positions]:
            del self._new[place]
            self._held[place] = start.positions[place]

    def to_commit(self) -> dict[TopicPartition, int]:
        """Return the offsets that are still to be committed."""
        return {place: at for place, at in self._held.items() if self._committed.get(place) != at}

    def acknowledged(self, offsets: Positions) -> None:
        """Note commits that the coordinator has accepted."""
        self._committed |= offsets

    def lost(self, places: Collection[TopicPartition]) -> None:
        """Give partitions up: records in flight are neither committed nor continued."""
        for place in places:
            for kept in (self._held, self._new, self._reading):
                kept.pop(place, None)

    def gained(
        self, start: MemberOffset, commits: Mapping[TopicPartition, int | None], firsts: Positions
    ) -> tuple[Jump, ...]:
        """Take partitions over, with the group's commit of each (or None), and return the jumps.

        If the group's commit is the stream's own last one, or equals its position, no other member has read since:
        then the stream continues at its position. Otherwise the commit wins, in either direction. ``firsts`` are the
        first offsets of partitions with neither.
        """
        jumps, positions = [], self._positions(start)
        for place, commit in commits.items():
            stood = positions.get(place)
            own = self._committed.pop(place, start.last_committed(place))
            if commit is None:
                if stood is None:
                    self._new[place] = firsts[place]
                else:
                    self._held[place] = stood
                continue
            self._committed[place] = commit
            if stood is None or commit in (own, stood):
                self._held[place] = commit if stood is None else stood
            else:
                self._held[place] = self._jumped[place] = commit
                jumps.append(Jump(place, stood, commit))
        return tuple(jumps)

    def moved(self, positions: Positions) -> None:
        """Continue here in partitions of a recreated topic, of which Kafka has no commits any more."""
        self._held |= positions
        for place in positions:
            self._committed.pop(place, None)
            self._jumped.pop(place, None)

    def next_offset(
        self, start: MemberOffset, ends: Positions, *, most: int | None = None, generation: int = -1
    ) -> MemberOffset:
        """Return the end of the micro-batch after ``start``, or ``start`` if there is nothing to read or store.

        ``ends`` are the ends of the partitions; partitions that are not owned, or whose commit is not acknowledged, do
        not count. ``most`` is ``maxOffsetsPerTrigger``.
        """
        waiting = self.to_commit()
        ready = {place: at for place, at in self._held.items() if place in ends and place not in waiting}
        mine = {place: max(ends[place], at) for place, at in ready.items()}
        if most is not None:
            mine = limited(ready, mine, {}, most)
        begins = {place: at for place, at in ready.items() if mine[place] > at}
        if not begins and not self._new:
            return start
        positions = {**self._positions(start), **self._new, **ready, **{place: mine[place] for place in begins}}
        committed = {
            place: own
            for place, at in positions.items()
            if place not in ready
            and place not in self._new
            and (own := self._committed.get(place, start.last_committed(place))) is not None
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

    def _positions(self, start: MemberOffset) -> Positions:
        """Return the positions of the checkpoint and of later jumps."""
        return {place: self._jumped.get(place, at) for place, at in start.positions.items()}
