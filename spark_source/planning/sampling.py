"""What a record of each partition weighs in bytes, from a look at a few records (``loadBy=bytes``).

What counts is the size that the records have unpacked, which a task decodes and hands on, and `RECORD_BYTES` for the
work that each of them is whatever its size. Offsets that compaction removed weigh nothing. The consumer that has found
out the offsets looks at the records, too: it is connected already. Kafka's DescribeLogDirs would tell the bytes of a
whole partition, but packed, with what lies outside the range, and only to users with rights on the cluster; it takes
another client, which takes longer to import than the look takes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from time import monotonic
from typing import TypeAlias

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.client import Client
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

MOST_PARTITIONS = 64
"""How many partitions are looked at, those with the most records first. Others count as the mean of their topic."""
ENOUGH = 100
"""How many records of a partition are looked at, from the middle of its range on."""
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


def record_bytes(
    options: SourceOptions, client: Client, ranges: Sequence[OffsetRange], learned: Learned, now_s: float
) -> dict[TopicPartition, float]:
    """What an offset weighs on average, for each range that has any; empty where nothing could be found out.

    ``learned`` is kept by the caller from one micro-batch to the next, and changed here. The client's consumer is one
    that nothing is assigned to; it is so again afterwards.

    Never raises for what Kafka answers or does not answer: a log line tells that records are counted instead.
    """
    filled = [item for item in ranges if len(item)]
    old = [item for item in filled if now_s - learned.get(_place(item), (0.0, -AGAIN_S))[1] >= AGAIN_S]
    looked_at = sorted(old, key=lambda item: (-len(item), item))[:MOST_PARTITIONS]
    if looked_at:
        found = sampled(client, looked_at)
        for place in map(_place, looked_at):
            # What was not found out is not asked again at each micro-batch, which would wait for it each time.
            sizes = [
                size
                for size in (learned.get(place, (math.nan,))[0], found.get(place, math.nan))
                if not math.isnan(size)
            ]
            learned[place] = (fmean(sizes) if sizes else math.nan, now_s)
    weights = {place: learned[place][0] for place in map(_place, filled) if place in learned}
    known = {place: size for place, size in weights.items() if not math.isnan(size)}
    if looked_at and not known:
        trouble = logging.WARNING if options.load_by == "bytes" else logging.INFO
        logger.log(trouble, "loadBy=bytes saw no record within %g s%s; counting records", PATIENCE_S, client.why())
    return completed(known, filled)


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
    """What was seen of a partition from one offset on."""

    start: int
    records: int = 0
    size_bytes: int = 0
    end: int = -1
    """The offset behind the last that was seen, with a record or without."""

    def add(self, offset: int, size_bytes: int) -> None:
        """The next record."""
        self.records, self.size_bytes, self.end = self.records + 1, self.size_bytes + size_bytes, offset + 1

    @property
    def is_enough(self) -> bool:
        """Whether more would tell little more."""
        return self.records >= ENOUGH or self.size_bytes >= ENOUGH_BYTES

    @property
    def weight_of_offset(self) -> float | None:
        """What an offset weighs; None without any record.

        Markers of transactions, and what compaction removed, tell nothing of the records beside them.
        """
        weight = self.size_bytes + RECORD_BYTES * self.records
        return weight / (self.end - self.start) if self.records else None


def sampled(client: Client, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    """What an offset weighs in each partition that a record of was seen in time, from the middle of its range on."""
    samples = {_place(item): Sample(item.start + len(item) // 2) for item in ranges}
    left = set(samples)
    deadline = monotonic() + PATIENCE_S
    consumer = client.consumer
    try:
        consumer.assign([confluent_kafka.TopicPartition(*place, sample.start) for place, sample in samples.items()])
        while left and monotonic() < deadline:
            done = set()
            for message in consumer.consume(ENOUGH, TURN_S):
                place = TopicPartition(message.topic(), message.partition())
                if place not in left:
                    continue
                if message.error() is None:
                    samples[place].add(message.offset(), len(message) + len(message.key() or b""))
                if message.error() is not None or samples[place].is_enough:
                    done.add(place)
            left -= done
            if done and left:
                # What has come of them already is dropped by the client, unseen.
                consumer.incremental_unassign([confluent_kafka.TopicPartition(*place) for place in done])
        consumer.unassign()
    except confluent_kafka.KafkaException as error:
        client.note(error.args[0])
    return {place: weight for place, sample in samples.items() if (weight := sample.weight_of_offset) is not None}
