"""Fetches the answers of one task ahead of their use, on a thread of its own that drives the sockets.

While Spark and the decoder are busy with one answer, the next ones of the same range and the first ones of the ranges
after it come in, from all leaders. Where an answer ends its headers tell, so nobody has to decode it for the next
question to be asked. What is held is bounded by `MOST_AHEAD_BYTES` and `MOST_AHEAD`. So many short ranges are asked for
together, which counts where each answer takes its time to travel.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.brokers import Brokers, Fetched
from loadwise.spark_source.reading.record_sets import end_of_batches
from loadwise.spark_source.task import OffsetRange

MOST_AHEAD_BYTES = 24 << 20
"""With so many bytes that were asked for and are not taken yet, nothing more is asked for: three answers of
``max.partition.fetch.bytes``, or more that are smaller."""
MOST_AHEAD = 12
"""Nor with so many answers: Kafka sends a whole batch at least, however little was asked for."""
FIRST_BYTES = 1 << 20
"""What is asked for of a partition of which nobody knows yet how large its records are."""
LEAST_BYTES = 64 << 10
"""What is asked for at least."""
SPARE = 1.1
"""How much more is asked for than the rest of a range should need: what is short costs one more round trip."""

T = TypeVar("T")


class LoopThread:
    """An event loop on a thread of its own; the one that makes it runs coroutines there and waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loadwise fetching", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine answers; raises what it raises. An interrupt of the caller cancels it."""
        answer: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return answer.result()
        except BaseException:
            answer.cancel()
            raise

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass(slots=True)
class Fetching:
    """The answers of a task's ranges, each asked for before it is taken. All of it runs on one event loop."""

    brokers: Brokers
    ranges: Sequence[OffsetRange]
    _current: int = 0
    """The range that is being read; those before it are done with."""
    _next: dict[int, int | None] = field(default_factory=dict)
    """By range, where its next question begins; None while an answer is awaited that will tell."""
    _asked: dict[tuple[int, int], asyncio.Task[Fetched]] = field(default_factory=dict)
    """By range and offset, answers that nobody has taken yet."""
    _asked_bytes: dict[tuple[int, int], int] = field(default_factory=dict)
    """For each of them, how many bytes were asked for, or have come."""
    _record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    """By partition, bytes of the log for each offset, by its latest answer."""

    async def take(self, index: int, offset: int) -> Fetched:
        """The answer for a range from an offset on. Raises `UnreachableError` and `AnsweredError`."""
        self._current = index
        if (index, offset) not in self._asked:
            self._forget(index)
            self._ask(index, offset)
        task = self._taken(index, offset)
        self._ask_ahead()
        return await task

    async def close(self) -> None:
        """Give up what is on its way, and close all connections."""
        tasks = list(self._asked.values())
        self._asked.clear()
        self._asked_bytes.clear()
        self._current = len(self.ranges)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.brokers.close()

    def _forget(self, index: int) -> None:
        """Drop what was asked for of a range that goes on somewhere else."""
        for place in [place for place in self._asked if place[0] == index]:
            self._taken(*place).cancel()

    def _taken(self, index: int, offset: int) -> asyncio.Task[Fetched]:
        del self._asked_bytes[index, offset]
        return self._asked.pop((index, offset))

    def _ask_ahead(self) -> None:
        for index in range(self._current, len(self.ranges)):
            if len(self._asked) >= MOST_AHEAD or sum(self._asked_bytes.values()) >= MOST_AHEAD_BYTES:
                return
            offset = self._next.get(index, self.ranges[index].start)
            if offset is not None and offset < self.ranges[index].end:
                self._ask(index, offset)

    def _ask(self, index: int, offset: int) -> None:
        self._next[index] = None
        wanted = self.ranges[index]
        place = TopicPartition(wanted.topic, wanted.partition)
        size = self._asked_bytes[index, offset] = self._bytes_for(place, wanted.end - offset)
        task = self._asked[index, offset] = asyncio.ensure_future(self._fetch(index, place, offset, size))
        # Who takes it sees its error; one that nobody takes any more is of no interest to anybody.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _fetch(self, index: int, place: TopicPartition, offset: int, size: int) -> Fetched:
        answer = await self.brokers.fetch(place, offset, size)
        if (index, offset) in self._asked_bytes:
            self._asked_bytes[index, offset] = len(answer.records)
        end = end_of_batches(answer.records, offset)
        if end > offset:
            self._record_bytes[place] = len(answer.records) / (end - offset)
            if self._next[index] is None:
                self._next[index] = end
                self._ask_ahead()
        return answer

    def _bytes_for(self, place: TopicPartition, offsets: int) -> int:
        size = self._record_bytes.get(place)
        wanted = FIRST_BYTES if size is None else max(LEAST_BYTES, int(offsets * size * SPARE))
        return min(wanted, self.brokers.config.max_partition_bytes)
