"""What is asked for ahead of its use, of brokers that answer when they are told to, and as Kafka does (KIP-74)."""

from __future__ import annotations

import asyncio
from itertools import chain
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from loadwise.protocol.error_codes import ErrorCode
from loadwise.spark_source.cluster.brokers import AnsweredError, Fetched, UnreachableError
from loadwise.spark_source.reading.fetching import (
    FIRST_BYTES,
    MOST_AHEAD,
    MOST_AHEAD_BYTES,
    TOGETHER_BYTES,
    Fetching,
)
from loadwise.spark_source.task import OffsetRange

LARGEST = 8 << 20
TOGETHER = TOGETHER_BYTES // FIRST_BYTES


class Brokers:
    """Answer each question with a batch of so many records, once that is due."""

    def __init__(self, records, size, leaders=1):
        self.config = SimpleNamespace(max_partition_bytes=LARGEST)
        self.records, self.size, self.leaders = records, size, leaders
        self.asked, self.held, self.due = [], 0, asyncio.Event()
        self.most_held = 0
        self.refused = {}
        """By partition, what is answered in place of its batch, once."""

    async def leader(self, place):
        return ("broker", place.partition % self.leaders)

    async def fetch(self, address, wanted):
        self.asked.append([(place.partition, offset) for place, offset, _ in wanted])
        assert {place.partition % self.leaders for place, _, _ in wanted} == {address[1]}
        assert len({place for place, _, _ in wanted}) == len(wanted), "Kafka takes each partition once"
        await self.due.wait()
        answers = []
        room, nothing_yet = sum(size for _, _, size in wanted), True
        for place, offset, size in wanted:
            batch = self.batch(offset)
            if (problem := self.refused.pop(place.partition, None)) is not None:
                if isinstance(problem, UnreachableError):
                    raise problem
                answers.append(problem)
                continue
            # Kafka's ReplicaManager.readFromLog: of the first partition with anything a whole batch at least.
            fits = nothing_yet or len(batch) <= min(size, room)
            answers.append(Fetched(batch if fits else b"", []))
            room -= len(batch) if fits else 0
            nothing_yet = nothing_yet and not fits
        self.held += sum(len(each.records) for each in answers if isinstance(each, Fetched))
        self.most_held = max(self.most_held, self.held)
        return answers

    def batch(self, offset):
        builder = DefaultRecordBatchBuilder(2, 0, False, -1, 0, 0, 1 << 30)
        for number in range(self.records):
            builder.append(number, 1, None, bytes(self.size), [])
        data = bytearray(builder.build())
        data[:8] = offset.to_bytes(8, "big")
        return bytes(data)


def play(brokers, ranges, steps):
    async def run():
        fetching = Fetching(brokers, ranges)
        try:
            await steps(fetching)
        finally:
            await fetching.close()

    asyncio.run(run())


def a_range_each(partitions, end):
    return [OffsetRange("t", partition, 0, end) for partition in range(partitions)]


async def settle():
    for _ in range(50):  # turns of the loop
        await asyncio.sleep(0)


async def read(brokers, fetching, ranges):
    """Take all answers one after the other, as a task does; what each range has given."""
    found = []
    for index, wanted in enumerate(ranges):
        at = wanted.start
        while at < wanted.end:
            answer = await fetching.take(index, at)
            if answer.records:
                brokers.held -= len(answer.records)
                found.append((wanted.partition, at))
                at += brokers.records
            await settle()
    return found


def test_many_short_ranges_are_asked_for_together():
    brokers, ranges = Brokers(10, 100), a_range_each(30, 10)

    async def steps(fetching):
        first = asyncio.ensure_future(fetching.take(0, 0))
        await settle()
        asked = [(partition, 0) for partition in range(MOST_AHEAD + 1)]
        assert brokers.asked == [asked[at : at + TOGETHER] for at in range(0, len(asked), TOGETHER)]
        brokers.due.set()
        await first
        for index in range(1, 30):
            await fetching.take(index, 0)
        assert sorted(chain(*brokers.asked)) == [(index, 0) for index in range(30)], "each once"

    play(brokers, ranges, steps)


def test_each_leader_is_asked_for_what_it_leads():
    brokers, ranges = Brokers(10, 100, leaders=3), a_range_each(30, 20)
    brokers.due.set()

    async def steps(fetching):
        assert await read(brokers, fetching, ranges) == [(index, at) for index in range(30) for at in (0, 10)]

    play(brokers, ranges, steps)


@pytest.mark.parametrize("size", [FIRST_BYTES - 1000, 3 << 20])
def test_what_is_held_is_bounded_however_large_batches_are(size):
    """The batches are larger than what was asked for, as Kafka's may be; the first answers must show how large."""
    brokers, ranges = Brokers(1, size), a_range_each(20, 2)
    brokers.due.set()

    async def steps(fetching):
        assert await read(brokers, fetching, ranges) == [(index, at) for index in range(20) for at in (0, 1)]
        fetches_before_any_answer = 1 + MOST_AHEAD // TOGETHER
        assert brokers.most_held <= MOST_AHEAD_BYTES + (1 + fetches_before_any_answer) * size

    play(brokers, ranges, steps)


def test_two_ranges_of_one_partition_are_asked_for_apart():
    brokers = Brokers(10, 100)
    brokers.due.set()
    ranges = [OffsetRange("t", 0, 0, 10), OffsetRange("t", 0, 50, 60)]

    async def steps(fetching):
        assert await read(brokers, fetching, ranges) == [(0, 0), (0, 50)]
        assert brokers.asked == [[(0, 0)], [(0, 50)]]

    play(brokers, ranges, steps)


def test_an_error_of_one_partition_is_no_error_of_those_asked_for_with_it():
    brokers, ranges = Brokers(10, 100), a_range_each(3, 10)
    brokers.due.set()
    brokers.refused[1] = AnsweredError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    async def steps(fetching):
        await fetching.take(0, 0)
        with pytest.raises(AnsweredError):
            await fetching.take(1, 0)
        assert (await fetching.take(1, 0)).records
        assert (await fetching.take(2, 0)).records
        assert [*chain(*brokers.asked)].count((1, 0)) == 2

    play(brokers, ranges, steps)


def test_a_connection_that_breaks_is_an_error_of_all_that_was_asked_for_over_it():
    brokers, ranges = Brokers(10, 100), a_range_each(3, 10)
    brokers.due.set()
    brokers.refused[1] = UnreachableError("broker:0: it is gone")

    async def steps(fetching):
        for index in range(3):
            with pytest.raises(UnreachableError):
                await fetching.take(index, 0)
            assert (await fetching.take(index, 0)).records

    play(brokers, ranges, steps)


def test_it_is_known_at_the_end_whether_an_answer_is_still_on_its_way():
    brokers, ranges = Brokers(10, 100), a_range_each(6, 10)

    async def steps(fetching):
        first = asyncio.ensure_future(fetching.take(0, 0))
        await settle()
        assert not await fetching.close()
        first.cancel()

    play(brokers, ranges, steps)
    brokers.due = asyncio.Event()
    brokers.due.set()

    async def all_of_it(fetching):
        await read(brokers, fetching, ranges)
        assert await fetching.close()

    play(brokers, ranges, all_of_it)


@pytest.mark.parametrize("where", ["leader", "fetch"])
def test_an_error_that_nobody_expects_reaches_who_waits_for_the_answer(where, monkeypatch):
    brokers, ranges = Brokers(10, 100), a_range_each(3, 10)

    async def fails(*_):
        raise ValueError("server sent an invalid nonce")

    monkeypatch.setattr(brokers, where, fails)

    async def steps(fetching):
        for index in range(3):
            with pytest.raises(ValueError, match="invalid nonce"):
                async with asyncio.timeout(10):
                    await fetching.take(index, 0)

    play(brokers, ranges, steps)


def test_who_waits_no_longer_takes_no_answer_from_others():
    brokers, ranges = Brokers(10, 100), a_range_each(3, 10)

    async def steps(fetching):
        first = asyncio.ensure_future(fetching.take(0, 0))
        await settle()
        first.cancel()
        await settle()
        brokers.due.set()
        async with asyncio.timeout(10):
            assert (await fetching.take(1, 0)).records

    play(brokers, ranges, steps)
