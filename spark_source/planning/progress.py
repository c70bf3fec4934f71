"""How far a stream has got, and how far its next micro-batch may go: positions in, positions and offset ranges out.

A position is the next offset to be read. As JSON it is what Spark's Kafka integration writes into a checkpoint,
``{"topic": {"0": 123}}``, so that either source goes on where the other stopped (``KafkaSourceOffset``, ``JsonUtils``).
Admission is that of ``KafkaMicroBatchStream``. Pure: Kafka's answers and the time come in as arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.task import OffsetRange

Positions: TypeAlias = Mapping[TopicPartition, int]
"""The next offset of each partition."""

MODE, MEMBER = "assignment.mode", "member"
"""What marks the offset of a stream that is a member of a group: a key that no topic is a value of, and its value."""

_ID = re.compile(r"\(id of (.+): ([\w-]+)\)", re.ASCII)
"""How the id of a topic is written into an offset: as a name that no topic can have, without partitions. Spark's Kafka
source reads over it."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How many offsets lie between what a stream has read and the end of its partitions."""

    least: int
    mean: float
    most: int

    def __str__(self) -> str:
        return f"lag min {self.least}, avg {self.mean:.1f}, max {self.most}"


@dataclass(frozen=True, slots=True)
class Step:
    """What one micro-batch reads."""

    ranges: tuple[OffsetRange, ...]
    """By topic and partition; empty ones included, since they too are partitions of the group."""
    losses: tuple[str, ...]
    """What cannot be read any more, each naming its partition and offsets."""


def from_json(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Positions out of a checkpoint, sorted. Raises `OptionError` for one of a member of a group."""
    if offset.get(MODE) == MEMBER:
        raise OptionError(
            MODE,
            "this checkpoint belongs to a stream with assignment.mode=member, which goes by the commits of its group;"
            " set that, or use another checkpointLocation, with startingOffsets where the group stands (the default,"
            " latest, leaves out what it has not read)",
        )
    found = ((TopicPartition(topic, int(index)), at) for topic, part in offset.items() for index, at in part.items())
    return dict(sorted(found))


def to_json(positions: Positions) -> dict[str, dict[str, int]]:
    """Positions as a checkpoint has them. Spark compares offsets as text, so the order is always the same."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def ids_in(offset: Mapping[str, Any]) -> dict[str, str]:
    """The ids of topics (KIP-516) in a checkpoint. Older ones have none, nor has one of Spark's Kafka source."""
    return {found[1]: found[2] for name in offset if (found := _ID.fullmatch(name))}


def with_ids(positions: Positions, ids: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """As `to_json`, with the id of each topic that is known."""
    offset = to_json(positions)
    return offset | {f"(id of {topic}: {ids[topic]})": {} for topic in sorted(ids.keys() & offset.keys())}


def apart_from_made_anew(
    positions: Positions, was: Mapping[str, str], now: Mapping[str, str]
) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
    """The positions in topics that are still the same, and what is lost of those that have another id now.

    A topic whose id is not known on both sides counts as the same.
    """
    anew = {topic for topic, id_ in was.items() if now.get(topic, id_) != id_}
    losses = tuple(
        f"{topic}-{partition} was deleted and made anew, with what it held from offset {offset} on (the topic's id was"
        f" {was[topic]} and is {now[topic]})"
        for (topic, partition), offset in sorted(positions.items())
        if topic in anew
    )
    return {place: offset for place, offset in positions.items() if place.topic not in anew}, losses


def positions_of(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Positions out of any checkpoint of ours, also a member's."""
    return from_json(offset["positions"] if offset.get(MODE) == MEMBER else offset)


def imbalance(begun: Positions, ended: Positions) -> float | None:
    """The most that was read between two positions of any partition, by the mean; None where nothing was read.

    A partition that ``begun`` does not know is left out: where it began is not told.
    """
    sizes = [max(0, ended[place] - at) for place, at in begun.items() if place in ended]
    total = sum(sizes)
    return max(sizes) * len(sizes) / total if total else None


def moved_back(start: Positions, latest: Positions) -> bool:
    """Whether a partition ends before it was read to, or is gone: the topic was made anew, or a broker is behind."""
    return any(latest.get(place, -1) < offset for place, offset in start.items())


def available(start: Positions, latest: Positions, first_of_new: Positions) -> dict[TopicPartition, int]:
    """How many offsets there are to read in each partition that has any; a new one is read from its first."""
    sizes = {place: end - start.get(place, first_of_new.get(place, end)) for place, end in latest.items()}
    return {place: size for place, size in sizes.items() if size > 0}


def limited(start: Positions, latest: Positions, first_of_new: Positions, most: int) -> dict[TopicPartition, int]:
    """Where a micro-batch of about ``most`` offsets ends: each partition gives in proportion to what it has.

    One that has anything gives at least one offset, so that none starves (``KafkaMicroBatchStream.rateLimit``).
    """
    sizes = available(start, latest, first_of_new)
    total = sum(sizes.values())
    ends = dict(latest)
    for place, size in sizes.items():
        # In whole numbers: a partition's share must not be rounded up to more than it has.
        share = size * most // total if size * most >= total else ceil(size * most / total)
        ends[place] = latest[place] - size + min(size, share)
    return ends


def step(start: Positions, end: Positions, first_of_new: Positions) -> Step:
    """The ranges between two positions, and what is lost between them.

    A partition that ``start`` does not know is new: it begins at its first offset, which must be 0; without one it is
    gone again. One that ``end`` does not know is gone. One whose end lies before its start was made anew, and goes on
    from that end.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    for place, offset in start.items():
        if place not in end:
            losses.append(f"{place.topic}-{place.partition} is gone, with what it held from offset {offset} on")
    for place, stop in sorted(end.items()):
        begin = start.get(place, first_of_new.get(place))
        name = f"{place.topic}-{place.partition}"
        if begin is None:
            losses.append(f"{name} was new, and is gone with its offsets up to {stop}")
            continue
        if place not in start and begin > 0:
            losses.append(f"{name} is new and its offsets [0, {begin}) are gone already")
        if stop < begin:
            losses.append(f"{name} was read up to offset {begin} and now ends at {stop}: it was deleted and made anew")
        ranges.append(OffsetRange(*place, begin, max(begin, stop)))
    return Step(tuple(ranges), tuple(losses))


def lag(consumed: Positions, latest: Positions) -> Lag:
    """The lag behind the end of every partition that is still there (``KafkaMicroBatchStream.metrics``)."""
    behind: Iterable[int] = [max(0, end - consumed.get(place, end)) for place, end in latest.items()]
    numbers = list(behind) or [0]
    return Lag(min(numbers), sum(numbers) / len(numbers), max(numbers))
