"""How much is asked for ahead of its use, of brokers that do not answer before they are told to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from loadwise.spark_source.cluster.brokers import Fetched
from loadwise.spark_source.reading.fetching import FIRST_BYTES, MOST_AHEAD, MOST_AHEAD_BYTES, Fetching
from loadwise.spark_source.task import OffsetRange

LARGEST, BATCH = 8 << 20, 3 << 20


class Brokers:
    """Answer each question with a batch of so many records, once that is due."""

    def __init__(self, records, size):
        self.config = SimpleNamespace(max_partition_bytes=LARGEST)
        self.records, self.size = records, size
        self.asked, self.due = [], asyncio.Event()

    async def fetch(self, place, offset, max_bytes):
        self.asked.append((place.partition, offset, max_bytes))
        await self.due.wait()
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, 0, 0, 1 << 30)
        for number in range(self.records):
            builder.append(number, 1, None, bytes(self.size), [])
        data = bytearray(builder.build())
        data[:8] = offset.to_bytes(8, "big")
        return Fetched(bytes(data), [])

    async def close(self):
        pass


def play(records, size, ranges, steps):
    async def run():
        brokers = Brokers(records, size)
        fetching = Fetching(brokers, [OffsetRange("t", partition, 0, end) for partition, end in enumerate(ranges)])
        try:
            await steps(brokers, fetching)
        finally:
            await fetching.close()

    asyncio.run(run())


async def settle():
    for _ in range(50):  # turns of the loop
        await asyncio.sleep(0)


def test_many_short_ranges_are_asked_for_together():
    async def steps(brokers, fetching):
        first = asyncio.ensure_future(fetching.take(0, 0))
        await settle()
        assert [partition for partition, _, _ in brokers.asked] == list(range(MOST_AHEAD + 1))
        assert {size for _, _, size in brokers.asked} == {FIRST_BYTES}
        brokers.due.set()
        await first
        for index in range(1, 30):
            await fetching.take(index, 0)
        assert sorted(brokers.asked) == [(index, 0, FIRST_BYTES) for index in range(30)], "each once"

    play(10, 100, [10] * 30, steps)


def test_nothing_more_is_asked_for_while_enough_is_held():
    """The batches are larger than what was asked for, as Kafka's may be."""

    async def steps(brokers, fetching):
        brokers.due.set()
        await fetching.take(0, 0)
        await settle()
        held = MOST_AHEAD
        assert len(brokers.asked) == 1 + held
        for index in range(1, 30):
            await fetching.take(index, 0)
            await settle()
            held -= 1
            if held * BATCH < MOST_AHEAD_BYTES:
                break
            assert len(brokers.asked) == 1 + MOST_AHEAD
        assert len(brokers.asked) > 1 + MOST_AHEAD

    play(1, BATCH, [1] * 30, steps)
