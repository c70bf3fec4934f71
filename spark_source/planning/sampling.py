"""What a record of each partition weighs in bytes, from a look at a few batches (``loadBy=bytes``).

What counts is the size that the records have unpacked, which a task decodes and hands on, and `RECORD_BYTES` for the
work that each of them is whatever its size. A batch tells how many offsets it covers and how many records it holds, so
offsets that compaction removed weigh nothing. Kafka's DescribeLogDirs would tell the bytes of a whole partition, but
packed, with what lies outside the range, and only to users with rights on the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean
from typing import TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.protocol.batches import HEADER_BYTES, MAGIC, read_header
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.unpacking import unpacked
from loadwise.spark_source.cluster.brokers import AnsweredError, Brokers, UnreachableError, tls_context
from loadwise.spark_source.options.connection_config import connection_config, not_honoured
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

MOST_PARTITIONS = 200
"""How many partitions are looked at, those with the most records first. Others count as the mean of their topic."""
PLACES = (1 / 6, 1 / 2, 5 / 6)
"""Where in a range batches are looked at."""
SAMPLE_BYTES = 16 << 10
"""What is asked for at each of them. Kafka sends a whole batch at least."""
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
    options: SourceOptions, ranges: Sequence[OffsetRange], learned: Learned, now_s: float
) -> dict[TopicPartition, float]:
    """What an offset weighs on average, for each range that has any; empty where nothing could be found out.

    ``learned`` is kept by the caller from one micro-batch to the next, and changed here.

    Never raises for what Kafka answers or does not answer: a log line tells that records are counted instead.
    """
    filled = [item for item in ranges if len(item)]
    trouble = logging.WARNING if options.load_by == "bytes" else logging.INFO
    names = not_honoured(options.client.settings)
    if names:
        logger.log(trouble, "loadBy=bytes cannot look at records with %s; counting records", ", ".join(names))
        return {}
    old = [item for item in filled if now_s - learned.get(_place(item), (0.0, -AGAIN_S))[1] >= AGAIN_S]
    looked_at = sorted(old, key=lambda item: (-len(item), item))[:MOST_PARTITIONS]
    if looked_at:
        # In a thread of its own: in a notebook, where one looks at a plan, this thread has an event loop that runs.
        with ThreadPoolExecutor(1) as thread:
            found = thread.submit(asyncio.run, _sampled(options, looked_at)).result()
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
        logger.log(trouble, "loadBy=bytes saw no record within %g s; counting records", PATIENCE_S)
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


def weight_of_offset(data: bytes) -> float | None:
    """What an offset weighs that the whole batches of ``data`` cover; None without any record. Pure.

    Markers of transactions and batches that compaction emptied tell nothing of the records beside them.
    """
    size = records = offsets = 0
    for of_batch, count, covered in _batches(memoryview(data)):
        size += len(of_batch)
        records += count
        offsets += covered
    return (size + RECORD_BYTES * records) / offsets if size and offsets > 0 else None


def _batches(view: memoryview) -> Iterator[tuple[bytes | memoryview, int, int]]:
    """The records of each whole batch, unpacked, how many they are and how many offsets the batch covers."""
    while (header := read_header(view)) is not None and header.magic == MAGIC:
        if not HEADER_BYTES <= header.size_bytes <= len(view):
            return
        count, records = max(0, header.record_count), view[HEADER_BYTES : header.size_bytes]
        if header.is_control:
            count, records = 0, records[:0]
        try:
            yield unpacked(records, header.compression), count, header.last_offset_delta + 1
        except (MalformedBytesError, MissingCodecError):
            yield records, count, header.last_offset_delta + 1  # the reader tells what is wrong with it
        view = view[header.size_bytes :]


async def _sampled(options: SourceOptions, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    config = connection_config(options.client.settings)
    topics = frozenset(item.topic for item in ranges)
    brokers = Brokers(config, tls_context(config.tls) if config.tls else None, topics)
    samples: dict[TopicPartition, list[float]] = {}

    async def look(item: OffsetRange, offset: int) -> None:
        place = _place(item)
        try:
            answer = await brokers.fetch(place, offset, SAMPLE_BYTES)
        except (UnreachableError, AnsweredError) as problem:
            logger.info("no sample of %s: %s", item, problem)
            return
        size = weight_of_offset(answer.records)
        if size is not None:
            samples.setdefault(place, []).append(size)

    looks = {(item, item.start + int(len(item) * at)) for item in ranges for at in PLACES}
    tasks = [asyncio.create_task(look(item, offset)) for item, offset in sorted(looks)]
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_S)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await brokers.close()
    return {place: fmean(sizes) for place, sizes in sorted(samples.items())}
