"""The positions of a stream, and the offset ranges between two of them.

Pure: Kafka's responses are passed in as arguments. A position is the next offset to be read. Its JSON is that of
Spark's Kafka integration in a checkpoint, ``{"topic": {"0": 123}}``, so that either source continues where the other
stopped (``KafkaSourceOffset``, ``JsonUtils``). Limits work as in ``KafkaMicroBatchStream``.
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
"""Key and value that mark the offset of a stream that is a member of a group."""

_ID = re.compile(r"\(id of (.+): ([\w-]+)\)", re.ASCII)
"""The id of a topic in an offset: a name that no topic can have, without partitions. Spark's source ignores it."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The offsets between a stream's positions and the end of its partitions."""

    least: int
    mean: float
    most: int

    def __str__(self) -> str:
        return f"lag min {self.least}, avg {self.mean:.1f}, max {self.most}"


@dataclass(frozen=True, slots=True)
class Step:
    """One micro-batch."""

    ranges: tuple[OffsetRange, ...]
    """By topic and partition; empty ones included, since they too are partitions of the group."""
    losses: tuple[str, ...]
    """Lost records, each with its partition and offsets."""


def from_json(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Read positions from a checkpoint, sorted. Raises `OptionError` for one of a member of a group."""
    if offset.get(MODE) == MEMBER:
        raise OptionError(
            MODE,
            "this checkpoint belongs to a stream with assignment.mode=member, which continues at the commits of its"
            " group; set that mode, or use another checkpointLocation and set startingOffsets to the group's commits"
            " (the default, latest, skips unread records)",
        )
    found = ((TopicPartition(topic, int(index)), at) for topic, part in offset.items() for index, at in part.items())
    return dict(sorted(found))


def to_json(positions: Positions) -> dict[str, dict[str, int]]:
    """Return positions as a checkpoint has them. Spark compares offsets as text, so they are sorted."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        topics.setdefault(topic, {})[str(partition)] = offset
    return topics


def ids_in(offset: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of topics (KIP-516) in a checkpoint. Spark's Kafka source and older versions write none."""
    return {found[1]: found[2] for name in offset if (found := _ID.fullmatch(name))}


def with_ids(positions: Positions, ids: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """Return the same as `to_json`, with the known ids of topics."""
    offset = to_json(positions)
    return offset | {f"(id of {topic}: {ids[topic]})": {} for topic in sorted(ids.keys() & offset.keys())}


def apart_from_recreated(
    positions: Positions, was: Mapping[str, str], now: Mapping[str, str]
) -> tuple[dict[TopicPartition, int], tuple[str, ...]]:
    """Return the positions in topics with an unchanged id, and the losses in the others, which were recreated.

    A topic without an id on either side counts as unchanged.
    """
    recreated = {topic for topic, id_ in was.items() if now.get(topic, id_) != id_}
    losses = tuple(
        f"{topic}-{partition} was deleted and created again, and its records from offset {offset} on are lost (the"
        f" topic's id was {was[topic]} and is now {now[topic]})"
        for (topic, partition), offset in sorted(positions.items())
        if topic in recreated
    )
    return {place: offset for place, offset in positions.items() if place.topic not in recreated}, losses


def positions_of(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Read positions from any checkpoint of ours, also a member's."""
    return from_json(offset["positions"] if offset.get(MODE) == MEMBER else offset)


def imbalance(begun: Positions, ended: Positions) -> float | None:
    """Return the largest number of offsets of a partition between two positions, over the mean; None without any.

    Partitions without a position in ``begun`` do not count.
    """
    sizes = [max(0, ended[place] - at) for place, at in begun.items() if place in ended]
    total = sum(sizes)
    return max(sizes) * len(sizes) / total if total else None


def moved_back(start: Positions, latest: Positions) -> bool:
    """Whether a partition ends before its position or is missing: the topic was recreated, or a broker is behind."""
    return any(latest.get(place, -1) < offset for place, offset in start.items())


def available(start: Positions, latest: Positions, first_of_new: Positions) -> dict[TopicPartition, int]:
    """Return how many offsets are unread in each partition that has any; a new one is read from its first."""
    sizes = {place: end - start.get(place, first_of_new.get(place, end)) for place, end in latest.items()}
    return {place: size for place, size in sizes.items() if size > 0}


def limited(start: Positions, latest: Positions, first_of_new: Positions, most: int) -> dict[TopicPartition, int]:
    """Return where a micro-batch of about ``most`` offsets ends: each partition gives in proportion to its backlog.

    Each with records gives at least one offset, so that none starves (``KafkaMicroBatchStream.rateLimit``).
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
    """Return the ranges between two positions, and the losses.

    A partition that is missing in ``start`` is new: it begins at its first offset, which must be 0; without a first
    offset it was deleted again. One that is missing in ``end`` was deleted. One whose end lies before its start was
    recreated, and continues at that end.
    """
    ranges: list[OffsetRange] = []
    losses: list[str] = []
    for place, offset in start.items():
        if place not in end:
            losses.append(
                f"{place.topic}-{place.partition} was deleted, and its records from offset {offset} on are lost"
            )
    for place, stop in sorted(end.items()):
        begin = start.get(place, first_of_new.get(place))
        name = f"{place.topic}-{place.partition}"
        if begin is None:
            losses.append(f"{name} was new, and was deleted with its offsets up to {stop}")
            continue
        if place not in start and begin > 0:
            losses.append(f"{name} is new, and its offsets [0, {begin}) were deleted already")
        if stop < begin:
            losses.append(
                f"{name} was read up to offset {begin} and now ends at {stop}: it was deleted and created again"
            )
        ranges.append(OffsetRange(*place, begin, max(begin, stop)))
    return Step(tuple(ranges), tuple(losses))


def lag(consumed: Positions, latest: Positions) -> Lag:
    """Return the lag behind the end of all existing partitions (``KafkaMicroBatchStream.metrics``)."""
    behind: Iterable[int] = [max(0, end - consumed.get(place, end)) for place, end in latest.items()]
    numbers = list(behind) or [0]
    return Lag(min(numbers), sum(numbers) / len(numbers), max(numbers))
