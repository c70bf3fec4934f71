"""Estimates the size of records in each partition from a sample of them (``loadBy=bytes``).

The weight of a record is its uncompressed size, which a task decodes and passes on, plus `RECORD_BYTES` for the work
that does not depend on the size. Offsets that compaction removed weigh nothing. A range with a large share of all
records is sampled in several parts: records may have grown, or an old part may be thin. The consumer that has looked up
the offsets is connected already, so it samples too. DescribeLogDirs has the compressed bytes of a whole partition only,
needs rights on the cluster, and its client takes longer to import than sampling takes.
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
"""How many partitions are sampled, those with the most records first. Others count as the mean of their topic."""
PARTS, MOST_PARTS, LEAST_PART = 16, 8, 1_000
"""The number of parts of all ranges together (at least one each), the most parts of one range, and the least offsets of
a part."""
ENOUGH = 100
"""The records to sample of a part, from its middle on."""
ENOUGH_BYTES = 64 << 10
"""Or this many bytes of them."""
TURN_S = 0.005
"""The longest wait of one call; a full call returns at once."""
RECORD_BYTES = 100
"""The work of one record in bytes. Measured up to Arrow's form, which Spark converts to rows: 0.15 us with
20 bytes, 0.3 with 100, 2.2 with 1,000 and 6.7 with 5,000."""
AGAIN_S = 60.0
"""A stream samples a partition again after this time; old and new size count the same."""
PATIENCE_S = 5.0
"""The longest time for all samples. Unknown sizes count as the mean of known ones."""


Learned: TypeAlias = dict[TopicPartition, tuple[float, float]]
"""By partition, the mean weight of an offset (NaN if no sample had a record), and the second of the last sample, of a
monotonic clock."""


class Weights(NamedTuple):
    """The weights of ranges."""

    means: dict[TopicPartition, float]
    """The mean weight of an offset."""
    densities: dict[TopicPartition, Density]
    """The weights along the ranges that were sampled now."""


def record_bytes(
    options: SourceOptions, client: Client, ranges: Sequence[OffsetRange], learned: Learned, now_s: float
) -> Weights:
    """Return the weights of ranges that are not empty; none if no record was seen.

    The caller keeps ``learned`` from one micro-batch to the next; it is changed here. The client's consumer has no
    assignment, before and afterwards. Errors of Kafka raise nothing; then records count, and the log says so.
    """
    filled = [item for item in ranges if len(item)]
    old = [item for item in filled if now_s - learned.get(_place(item), (0.0, -AGAIN_S))[1] >= AGAIN_S]
    found: dict[TopicPartition, Density] = {}
    looked_at = sorted(old, key=lambda item: (-len(item), item))[:MOST_PARTITIONS]
    if looked_at:
        found = sampled(client, looked_at)
        for place in map(_place, looked_at):
            # A partition without a record seen is not sampled at each micro-batch, which would wait for it each time.
            seen = found[place].mean if place in found else math.nan
            sizes = [size for size in (learned.get(place, (math.nan,))[0], seen) if not math.isnan(size)]
            learned[place] = (fmean(sizes) if sizes else math.nan, now_s)
    weights = {place: learned[place][0] for place in map(_place, filled) if place in learned}
    known = {place: size for place, size in weights.items() if not math.isnan(size)}
    if looked_at and not known:
        trouble = logging.WARNING if options.plan.load_by == "bytes" else logging.INFO
        logger.log(trouble, "loadBy=bytes: no record came within %g s%s; tasks share records", PATIENCE_S, client.why())
    return Weights(completed(known, filled), found)


def _place(item: OffsetRange) -> TopicPartition:
    return TopicPartition(item.topic, item.partition)


def completed(found: dict[TopicPartition, float], filled: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    """Add partitions that were not sampled, with the mean of their topic or of all. Pure."""
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
    """The sample of a part of a partition, from an offset in its middle on."""

    start: int
    part_end: int
    """The offset behind the part."""
    filled_from: int = -1
    """The part is empty before this offset; -1 if unknown."""
    records: int = 0
    size_bytes: int = 0
    end: int = -1
    """The offset behind the last one seen, with a record or without."""

    def add(self, offset: int, size_bytes: int) -> None:
        """Add the next record. Empty offsets before the first one count separately."""
        self.start = max(self.start, self.filled_from)
        self.records, self.size_bytes, self.end = self.records + 1, self.size_bytes + size_bytes, offset + 1

    def ends(self) -> None:
        """Note that the part has no further record."""
        self.end = self.part_end

    @property
    def is_enough(self) -> bool:
        """Whether more records would change little."""
        return self.records >= ENOUGH or self.size_bytes >= ENOUGH_BYTES

    @property
    def weight_of_offset(self) -> float | None:
        """The weight of an offset; None if nothing was seen."""
        weight = self.size_bytes + RECORD_BYTES * self.records
        return weight / (self.end - self.start) if self.end > self.start else None


@dataclass(slots=True)
class _Look:
    """The samples of one range, one after the other."""

    wanted: OffsetRange
    samples: list[Sample]
    at: int = 0
    """The index of the current sample."""

    @classmethod
    def of(cls, wanted: OffsetRange, count: int) -> _Look:
        edges = [wanted.start + len(wanted) * part // count for part in range(count + 1)]
        return cls(wanted, [Sample((start + end) // 2, end) for start, end in pairwise(edges)])

    @property
    def position(self) -> int | None:
        """The next offset to sample; None at the end."""
        return self.samples[self.at].start if self.at < len(self.samples) else None

    def add(self, offset: int, size_bytes: int) -> bool:
        """Add the next record. Return whether the following ones are wanted; if not, continue at `position`."""
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
        """Note that nothing more comes; with ``with_all_seen`` the partition has no further record."""
        for sample in self.samples[self.at :] if with_all_seen else ():
            sample.ends()
        self.at = len(self.samples)

    @property
    def density(self) -> Density | None:
        """The weights along the range; None without a record (transaction markers or removed records only)."""
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
    """Return the number of parts to sample in each range: more in those with a large share of all records. Pure."""
    total = sum(map(len, ranges))
    return [max(1, min(MOST_PARTS, PARTS * len(item) // total, len(item) // LEAST_PART)) for item in ranges]


def sampled(client: Client, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, Density]:
    """Return the weights along each range of which a record came in time."""
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
                # The client drops their records that have arrived already.
                consumer.incremental_unassign([confluent_kafka.TopicPartition(*place) for place in done])
    except confluent_kafka.KafkaException as error:
        client.note(error.args[0])
    finally:
        consumer.unassign()  # the client may be kept, and would go on reading
    return {place: density for place, look in found.items() if (density := look.density) is not None}
