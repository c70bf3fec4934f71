"""What a record of each partition weighs in bytes, from a look at a few records (``loadBy=bytes``).

What counts is the size that the records have unpacked, which a task decodes and hands on, and `RECORD_BYTES` for the
work that each of them is whatever its size. Offsets that compaction removed weigh nothing. A range with a large share
of all records is looked at in several parts: records may have grown, or an old part may be thin. The consumer that has
found out the offsets looks at the records, too: it is connected already. Kafka's DescribeLogDirs would tell the bytes
of a whole partition, but packed, with what lies outside the range, and only to users with rights on the cluster; it
takes another client, which takes longer to import than the look takes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from time import monotonic
from typing import NamedTuple, TypeAlias

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.client import Client
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.planning.density import Density
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

MOST_PARTITIONS = 64
"""How many partitions are looked at, those with the most records first. Others count as the mean of their topic."""
PARTS, MOST_PARTS, LEAST_PART = 16, 8, 1_000
"""In how many parts all ranges together are looked at, as far as one look at each does not make more of them; in how
many one range is at most; and how many offsets a part has at least."""
ENOUGH = 100
"""How many records of a part are looked at, from its middle on."""
ENOUGH_BYTES = 64 << 10
"""With so many bytes, fewer will do."""
TURN_S = 0.005
"""How long one call waits for as many. Not a delay: a full call returns at once."""
RECORD_BYTES = 100
"""How many bytes are as much work as one record more. Measured: a record takes 0.15 us with 20 bytes, 0.3 with 100, 2.2
with 1,000 and 6.7 with 5,000 until it is in Arrow's form, and Spark makes a row of each."""
AGAIN_S = 60.0
"""A stream looks at a partition again after so long; what it learns then counts as much as what it knew."""
PATIENCE_S = 5.0
"""How long all of it may take. What is not known by then counts as the mean of what is."""


Learned: TypeAlias = dict[TopicPartition, tuple[float, float]]
"""By partition, what an offset weighs, NaN where a look has found out nothing so far, and the second (of a monotonic
clock) in which that was last looked at."""


class Weights(NamedTuple):
    """What was found out about ranges."""

    means: dict[TopicPartition, float]
    """What an offset weighs on average."""
    densities: dict[TopicPartition, Density]
    """Of those that were looked at just now, what offsets weigh along the range."""


def record_bytes(
    options: SourceOptions, client: Client, ranges: Sequence[OffsetRange], learned: Learned, now_s: float
) -> Weights:
    """What offsets weigh, for each range that has any; empty where nothing could be found out.

    ``learned`` is kept by the caller from one micro-batch to the next, and changed here. The client's consumer is one
    that nothing is assigned to; it is so again afterwards.

    Never raises for what Kafka answers or does not answer: a log line tells that records are counted instead.
    """
    filled = [item for item in ranges if len(item)]
    old = [item for item in filled if now_s - learned.get(_place(item), (0.0, -AGAIN_S))[1] >= AGAIN_S]
    found: dict[TopicPartition, Density] = {}
    looked_at = sorted(old, key=lambda item: (-len(item), item))[:MOST_PARTITIONS]
    if looked_at:
        found = sampled(client, looked_at)
        for place in map(_place, looked_at):
            # What was not found out is not asked again at each micro-batch, which would wait for it each time.
            seen = found[place].mean if place in found else math.nan
            sizes = [size for size in (learned.get(place, (math.nan,))[0], seen) if not math.isnan(size)]
            learned[place] = (fmean(sizes) if sizes else math.nan, now_s)
    weights = {place: learned[place][0] for place in map(_place, filled) if place in learned}
    known = {place: size for place, size in weights.items() if not math.isnan(size)}
    if looked_at and not known:
        trouble = logging.WARNING if options.plan.load_by == "bytes" else logging.INFO
        logger.log(trouble, "loadBy=bytes saw no record within %g s%s; counting records", PATIENCE_S, client.why())
    return Weights(completed(known, filled), found)


def _place(item: OffsetRange) -> TopicPartition:
    return TopicPartition(item.topic, item.partition)


def completed(found: dict[TopicPartition, float], filled: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    """With the mean of its topic, or of all, for each partition that was not looked at. Pure."""
    if not found:
        return {}
    topics: dict[str, list[float]] = {}
    for place, size in found.items():
        topics.setdefault(place.topic, []).append(size)
    mean = fmean(found.values())
    places = map(_place, filled)
    return {place: found.get(place, fmean(topics[place.topic]) if place.topic in topics else mean) for place in places}


@dataclass(slots=True)
class Sample:
    """What was seen of a part of a partition, from one offset in its middle on."""

    start: int
    part_end: int
    """The offset behind the part."""
    filled_from: int = -1
    """The part is empty before this offset; -1 where nobody has seen that."""
    records: int = 0
    size_bytes: int = 0
    end: int = -1
    """The offset behind the last that was seen, with a record or without."""

    def add(self, offset: int, size_bytes: int) -> None:
        """The next record. What was empty before the first counts for itself."""
        self.start = max(self.start, self.filled_from)
        self.records, self.size_bytes, self.end = self.records + 1, self.size_bytes + size_bytes, offset + 1

    def ends(self) -> None:
        """There is no further record in the part."""
        self.end = self.part_end

    @property
    def is_enough(self) -> bool:
        """Whether more would tell little more."""
        return self.records >= ENOUGH or self.size_bytes >= ENOUGH_BYTES

    @property
    def weight_of_offset(self) -> float | None:
        """What an offset weighs; None where nothing was seen."""
        weight = self.size_bytes + RECORD_BYTES * self.records
        return weight / (self.end - self.start) if self.end > self.start else None


@dataclass(slots=True)
class _Look:
    """The samples of one range, one after the other."""

    wanted: OffsetRange
    samples: list[Sample]
    at: int = 0
    """Which of them is looked at."""

    @classmethod
    def of(cls, wanted: OffsetRange, count: int) -> _Look:
        edges = [wanted.start + len(wanted) * part // count for part in range(count + 1)]
        return cls(wanted, [Sample((start + end) // 2, end) for start, end in pairwise(edges)])

    @property
    def position(self) -> int | None:
        """Where to look next; None where all has been seen."""
        return self.samples[self.at].start if self.at < len(self.samples) else None

    def add(self, offset: int, size_bytes: int) -> bool:
        """The next record. Whether the look goes on from there: otherwise it goes on at `position`."""
        while self.at < len(self.samples):
            sample = self.samples[self.at]
            if offset < sample.start:
                return False
            if offset < sample.part_end:
                sample.add(offset, size_bytes)
                self.at += sample.is_enough
                return not sample.is_enough
            sample.ends()
            self.at += 1
            if self.at < len(self.samples):
                self.samples[self.at].filled_from = offset
        return False

    def ends(self, *, with_all_seen: bool) -> None:
        """Nothing more comes; ``with_all_seen`` because the partition has no further record."""
        for sample in self.samples[self.at :] if with_all_seen else ():
            sample.ends()
        self.at = len(self.samples)

    @property
    def density(self) -> Density | None:
        """None without any record: markers of transactions alone, or what compaction removed, tell nothing."""
        if not any(sample.records for sample in self.samples):
            return None
        mean = fmean(weight for sample in self.samples if (weight := sample.weight_of_offset) is not None)
        edges, weights = [self.wanted.start], []
        for sample in self.samples:
            weight = sample.weight_of_offset
            if edges[-1] < sample.filled_from < sample.part_end:
                edges.append(sample.filled_from)
                weights.append(0.0)
            edges.append(sample.part_end)
            weights.append(mean if weight is None else weight)
        return Density(tuple(edges), tuple(weights))


def looks(ranges: Sequence[OffsetRange]) -> list[int]:
    """In how many parts of each range to look: more in those with a large share of all records. Pure."""
    total = sum(map(len, ranges))
    return [max(1, min(MOST_PARTS, PARTS * len(item) // total, len(item) // LEAST_PART)) for item in ranges]


def sampled(client: Client, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, Density]:
    """What offsets weigh along each range that a record of was seen in time."""
    found = {_place(item): _Look.of(item, count) for item, count in zip(ranges, looks(ranges), strict=True)}
    left = dict(found)
    deadline = monotonic() + PATIENCE_S
    consumer = client.consumer
    try:
        consumer.assign([confluent_kafka.TopicPartition(*place, look.position) for place, look in found.items()])
        while left and monotonic() < deadline:
            done = []
            moved: dict[TopicPartition, int] = {}
            for message in consumer.consume(ENOUGH, TURN_S):
                place = TopicPartition(message.topic(), message.partition())
                look = left.get(place)
                if look is None or place in moved:
                    continue
                error = message.error()
                if error is not None:
                    look.ends(with_all_seen=error.code() == confluent_kafka.KafkaError._PARTITION_EOF)
                elif look.add(message.offset(), len(message) + len(message.key() or b"")):
                    continue
                if look.position is None:
                    done.append(place)
                    del left[place]
                else:
                    moved[place] = look.position
            for place, position in moved.items():
                consumer.seek(confluent_kafka.TopicPartition(*place, position))
            if done and left:
                # What has come of them already is dropped by the client, unseen.
                consumer.incremental_unassign([confluent_kafka.TopicPartition(*place) for place in done])
    except confluent_kafka.KafkaException as error:
        client.note(error.args[0])
    finally:
        consumer.unassign()  # the client may be kept, and would go on reading
    return {place: density for place, look in found.items() if (density := look.density) is not None}
