"""Fetches the answers of one task ahead of their use, on a thread of its own that drives the sockets.

While Spark and the decoder are busy with one answer, the next ones of the same range and the first ones of later ranges
arrive, from all leaders. The headers of an answer say where it ends, so the next request need not wait until it is
decoded. Small requests to one leader go together in one Fetch, so that many short ranges take one round trip; only the
first batch of its answer may exceed the requested size (KIP-74). `MOST_AHEAD_BYTES` and `MOST_AHEAD` bound the answers
in memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from loadwise.assignor.model import TopicPartition
from loadwise.protocol.batches import end_of_batches
from loadwise.spark_source.cluster.brokers import Address, AnsweredError, Brokers, Fetched
from loadwise.spark_source.task import OffsetRange

MOST_AHEAD_BYTES = 24 << 20
"""The most bytes that may be requested and not taken yet: three answers of ``max.partition.fetch.bytes``, or more that
are smaller."""
MOST_AHEAD = 12
"""The most answers that may be requested and not taken yet."""
TOGETHER_BYTES = 4 << 20
"""The most bytes of one Fetch: the first part of a longer answer would wait for the last."""
FIRST_BYTES = 1 << 20
"""The size of a request while the size of the partition's records is unknown."""
LEAST_BYTES = 64 << 10
"""The least size of a request."""
SPARE = 1.1
"""The margin over the estimated rest of a range: if the answer is short, one more round trip is needed."""

T = TypeVar("T")


class LoopThread:
    """An event loop on its own thread; the creator runs coroutines there and waits for them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loadwise fetching", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of the coroutine, or raise its error. An interrupt of the caller cancels it."""
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


@dataclass(slots=True, eq=False)
class _Question:
    """A request for records of one range from an offset on."""

    index: int
    place: TopicPartition
    offset: int
    size_bytes: int
    answer: asyncio.Future[Fetched]
    held_bytes: int
    """The size that its answer counts as: the requested size, or the actual one."""


@dataclass(slots=True)
class Fetching:
    """The answers of a task's ranges, requested before they are taken. It runs on one event loop."""

    brokers: Brokers
    ranges: Sequence[OffsetRange]
    _current: int = 0
    """The range that is being read; earlier ones are done."""
    _next: dict[int, int | None] = field(default_factory=dict)
    """By range, where its next request begins; None until the pending answer says it."""
    _asked: dict[tuple[int, int], _Question] = field(default_factory=dict)
    """By range and offset, requests whose answers are not taken yet."""
    _record_bytes: dict[TopicPartition, float] = field(default_factory=dict)
    """By partition, bytes of the log for each offset, by its latest answer."""
    _largest_bytes: int = 0
    """The largest answer that exceeded its requested size: others may, too."""
    _under_way: set[asyncio.Task[None]] = field(default_factory=set)

    async def take(self, index: int, offset: int) -> Fetched:
        """Return the answer for a range from an offset on.

        Raises `UnreachableError`, `AnsweredError`, and any other error of the client.
        """
        self._current = index
        if (index, offset) not in self._asked:
            # The range continues at another offset, so pending answers for it are dropped.
            for place in [place for place in self._asked if place[0] == index]:
                del self._asked[place]
            self._next[index] = offset
            self._ask_ahead(at_least=index)
        question = self._asked.pop((index, offset))
        self._ask_ahead()
        # A caller that is cancelled does not cancel the answer: answers to other questions come together with it.
        return await asyncio.shield(question.answer)

    async def close(self) -> bool:
        """Give up pending answers. Return True if there were none, so that others may use the connections."""
        left = [task for task in self._under_way if not task.done()]
        self._asked.clear()
        self._current = len(self.ranges)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return not left

    def _ask_ahead(self, at_least: int = -1) -> None:
        """Request the next records of each range as far as there is room, and of one range in any case."""
        together: list[_Question] = []
        held_bytes = sum(question.held_bytes for question in self._asked.values())
        for index in range(self._current, len(self.ranges)):
            if index != at_least and (len(self._asked) >= MOST_AHEAD or held_bytes >= MOST_AHEAD_BYTES):
                break
            offset = self._next.get(index, self.ranges[index].start)
            if offset is None or offset >= self.ranges[index].end:
                continue
            question = self._asked[index, offset] = self._question(index, offset)
            self._next[index] = None
            held_bytes += question.held_bytes
            size_bytes = sum(other.size_bytes for other in together) + question.size_bytes
            # One Fetch may have each partition once.
            if size_bytes > TOGETHER_BYTES or any(other.place == question.place for other in together):
                self._send(together)
                together = []
            together.append(question)
        self._send(together)

    def _question(self, index: int, offset: int) -> _Question:
        wanted = self.ranges[index]
        place = TopicPartition(wanted.topic, wanted.partition)
        size_bytes = self._bytes_for(place, wanted.end - offset)
        answer: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        # `take` raises its error; asyncio must not log that of an answer which is not taken any more.
        answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        return _Question(index, place, offset, size_bytes, answer, max(size_bytes, self._largest_bytes))

    def _bytes_for(self, place: TopicPartition, offsets: int) -> int:
        size = self._record_bytes.get(place)
        wanted = FIRST_BYTES if size is None else max(LEAST_BYTES, int(offsets * size * SPARE))
        return min(wanted, self.brokers.config.max_partition_bytes)

    def _send(self, together: Sequence[_Question]) -> None:
        if together:
            task = asyncio.ensure_future(self._fetch(together))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _fetch(self, together: Sequence[_Question]) -> None:
        by_leader: dict[Address, list[_Question]] = {}
        for question in together:
            try:
                address = await self.brokers.leader(question.place)
            except Exception as error:  # noqa: BLE001 (`take` raises it)
                question.answer.set_exception(error)
            else:
                by_leader.setdefault(address, []).append(question)
        await asyncio.gather(*(self._fetch_from(address, mine) for address, mine in by_leader.items()))

    async def _fetch_from(self, address: Address, together: Sequence[_Question]) -> None:
        """Request records from one leader, and again those that its answer had no room for, awaited ones alone."""
        wanted = [(question.place, question.offset, question.size_bytes) for question in together]
        try:
            answers = await self.brokers.fetch(address, wanted)
        except Exception as error:  # noqa: BLE001 (likewise)
            for question in together:
                question.answer.set_exception(error)
            return
        for question, answer in zip(together, answers, strict=True):
            place = (question.index, question.offset)
            if isinstance(answer, AnsweredError):
                question.answer.set_exception(answer)
            elif answer.records or question is together[0]:
                self._arrived(question, answer)
            elif self._asked.get(place) is question:
                del self._asked[place]
                self._next[question.index] = question.offset
            else:
                self._send([question])
        self._ask_ahead()

    def _arrived(self, question: _Question, answer: Fetched) -> None:
        question.held_bytes = len(answer.records)
        if question.held_bytes > question.size_bytes:
            self._largest_bytes = max(self._largest_bytes, question.held_bytes)
        end = end_of_batches(answer.records, question.offset)
        if end > question.offset:
            self._record_bytes[question.place] = question.held_bytes / (end - question.offset)
            if self._next[question.index] is None:
                self._next[question.index] = end
        question.answer.set_result(answer)
