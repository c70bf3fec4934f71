"""How many bytes a record of each partition has, from a look at a few batches (``loadBy=bytes``).

What counts is the size that the records have unpacked: that is what a task decodes and hands on. A batch tells how many
offsets it covers, so offsets that compaction removed weigh nothing. Kafka's DescribeLogDirs would tell the bytes of a
whole partition, but packed, with what lies outside the range, and only to users with rights on the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

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
PATIENCE_S = 5.0
"""How long all of it may take. What is not known by then counts as the mean of what is."""


def record_bytes(options: SourceOptions, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    """The mean bytes of an offset, for each range that has any; empty where nothing could be found out.

    Never raises for what Kafka answers or does not answer: a warning tells that records are counted instead.
    """
    filled = [item for item in ranges if len(item)]
    names = not_honoured(options.client.settings)
    if names:
        logger.warning("loadBy=bytes cannot look at records with %s; counting records", ", ".join(names))
        return {}
    looked_at = sorted(filled, key=lambda item: (-len(item), item))[:MOST_PARTITIONS]
    # In a thread of its own: in a notebook, where one looks at a plan, this thread has an event loop that runs already.
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(asyncio.run, _sampled(options, looked_at)).result()
    if filled and not found:
        logger.warning("loadBy=bytes saw no record within %g s; counting records", PATIENCE_S)
    return completed(found, filled)


def completed(found: dict[TopicPartition, float], filled: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    """With the mean of its topic, or of all, for each partition that was not looked at. Pure."""
    if not found:
        return {}
    topics: dict[str, list[float]] = {}
    for place, size in found.items():
        topics.setdefault(place.topic, []).append(size)
    mean = fmean(found.values())
    places = [TopicPartition(item.topic, item.partition) for item in filled]
    return {place: found.get(place, fmean(topics[place.topic]) if place.topic in topics else mean) for place in places}


def bytes_of_offset(data: bytes) -> float | None:
    """Unpacked bytes for each offset that the whole batches of ``data`` cover; None without any record. Pure.

    Markers of transactions and batches that compaction emptied tell nothing of the records beside them.
    """
    size = offsets = 0
    for records, covered in _batches(memoryview(data)):
        size += len(records)
        offsets += covered
    return size / offsets if size and offsets > 0 else None


def _batches(view: memoryview) -> Iterator[tuple[bytes | memoryview, int]]:
    while (header := read_header(view)) is not None and header.magic == MAGIC:
        if not HEADER_BYTES <= header.size_bytes <= len(view):
            return
        records = view[HEADER_BYTES : header.size_bytes]
        if header.is_control:
            records = records[:0]
        try:
            yield unpacked(records, header.compression), header.last_offset_delta + 1
        except (MalformedBytesError, MissingCodecError):
            yield records, header.last_offset_delta + 1  # the reader tells what is wrong with it
        view = view[header.size_bytes :]


async def _sampled(options: SourceOptions, ranges: Sequence[OffsetRange]) -> dict[TopicPartition, float]:
    config = connection_config(options.client.settings)
    brokers = Brokers(config, tls_context(config.tls) if config.tls else None)
    samples: dict[TopicPartition, list[float]] = {}

    async def look(item: OffsetRange, offset: int) -> None:
        place = TopicPartition(item.topic, item.partition)
        try:
            answer = await brokers.fetch(place, offset, SAMPLE_BYTES)
        except (UnreachableError, AnsweredError) as problem:
            logger.info("no sample of %s: %s", item, problem)
            return
        size = bytes_of_offset(answer.records)
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
