"""Reads offset ranges as whole record batches: Fetch over aiokafka's connections, columns by numpy and Arrow.

While Spark takes the records of one answer, Kafka sends the next ones: see `fetching`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import pyarrow as pa

from loadwise.protocol.error_codes import ErrorCode
from loadwise.spark_source.cluster.brokers import (
    PASSING,
    AnsweredError,
    Brokers,
    Fetched,
    UnreachableError,
    tls_context,
)
from loadwise.spark_source.errors import START_BEHIND, BatchError, OtherReaderError
from loadwise.spark_source.options.bounds import EARLIEST
from loadwise.spark_source.options.connection_config import ConnectionConfig, connection_config
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.reading import position
from loadwise.spark_source.reading.arrow_batches import BatchBuilder
from loadwise.spark_source.reading.fetching import Fetching, LoopThread
from loadwise.spark_source.reading.position import CHECK_OPTIONS, MAY_READ, Reading
from loadwise.spark_source.reading.record_columns import Records
from loadwise.spark_source.reading.record_sets import record_sets
from loadwise.spark_source.reuse import Kept, made_from
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

_REMEDIES = {
    ErrorCode.CORRUPT_MESSAGE: f"the batch there is corrupt on the broker: {START_BEHIND}",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: MAY_READ,
    ErrorCode.UNSUPPORTED_VERSION: "set reader=messages, whose client supports other versions of Kafka",
}
"""What to do about errors that a retry does not fix."""


def read_ranges(
    ranges: Sequence[OffsetRange], options: SourceOptions, builder: BatchBuilder
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the ranges as Arrow record batches. Raises what `read_task` raises."""
    of = made_from(options.client.settings)
    connections = _KEPT.take(of) or _Connections.of(connection_config(options.client.settings))
    brokers, thread = connections.brokers, connections.thread
    brokers.topics = frozenset(item.topic for item in ranges)
    fetching = Fetching(brokers, ranges)
    others: tuple[OffsetRange, ...] = ()
    done = False
    try:
        for index, wanted in enumerate(ranges):
            ranged = _RangeReader(Reading(wanted, options), fetching, index)
            while (answer := thread.run(ranged.next_answer())) is not None:
                yield from ranged.batches(answer, builder)
        done = True
    except OtherReaderError as error:
        left = replace(ranged.wanted, start=ranged.position)
        logger.warning("%s: %s; continuing with reader=messages, which is slower", left, error.problem)
        others = (left, *ranges[index + 1 :])
    finally:
        # Answers that are still on their way would come between those of the next task.
        idle = thread.run(fetching.close())
        for ended in _KEPT.give(of, connections) if idle and done else [connections]:
            ended.close()
    if others:
        from loadwise.spark_source.reading import message_reader  # noqa: PLC0415 - librdkafka: seldom needed

        yield from message_reader.read_ranges(others, options, builder)


@dataclass(frozen=True, slots=True)
class _Connections:
    """The connections of one task at a time, and the thread that drives them."""

    brokers: Brokers
    thread: LoopThread

    @classmethod
    def of(cls, config: ConnectionConfig) -> _Connections:
        return cls(Brokers(config, tls_context(config.tls) if config.tls else None), LoopThread())

    def close(self) -> None:
        self.thread.run(self.brokers.close())
        self.thread.close()


_KEPT: Kept[_Connections] = Kept()


class _RangeReader:
    def __init__(self, at: Reading, fetching: Fetching, index: int) -> None:
        self._reading = at
        self._fetching = fetching
        self._brokers = fetching.brokers
        self._index = index
        self._complaint = ""
        self._answered_at: int | None = None
        """The position at the last answer."""
        self._unknown_since: float | None = None
        """Since when brokers have answered that the topic or partition does not exist."""
        at.position = at.wanted.start

    @property
    def wanted(self) -> OffsetRange:
        """The range."""
        return self._reading.wanted

    @property
    def position(self) -> int:
        """The next offset to be read."""
        return self._reading.position

    async def next_answer(self) -> Fetched | None:
        """Return the next answer with records; None at the range's end."""
        at, config = self._reading, self._brokers.config
        pause_s = config.retry_backoff_ms / 1000
        stuck, self._answered_at = self._answered_at == at.position, at.position
        if not stuck:
            at.renew()
        while at.position < at.wanted.end:
            try:
                async with asyncio.timeout(at.left_s):
                    # The last answer held no whole batch, which Kafka never sends.
                    answer = None if stuck else await self._taken()
                    if answer is not None:
                        return answer
                    stuck = False
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, config.retry_backoff_max_ms / 1000)
            except TimeoutError:
                if not at.left_s:
                    raise at.too_late(self._why()) from None
        return None

    async def _taken(self) -> Fetched | None:
        """Return the next answer; None if it was empty, or none came."""
        try:
            answer = await self._fetching.take(self._index, self._reading.position)
        except UnreachableError as error:
            self._note(str(error))
            return None
        except AnsweredError as error:
            self._answered(error)
            return None
        self._unknown_since = None
        return answer if answer.records else None

    def _answered(self, error: AnsweredError) -> None:
        at = self._reading
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            at.lose(str(error), at.left(self._first_offset()))
        elif error.code == ErrorCode.UNSUPPORTED_VERSION and not at.options.reader_is_given:
            raise OtherReaderError(str(error), _REMEDIES[error.code])
        elif error.code not in PASSING:
            raise at.refused(str(error), _REMEDIES.get(error.code, CHECK_OPTIONS))
        elif error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._unknown_for_long():
            at.lose("the topic or partition does not exist", at.wanted.end)
        else:
            self._note(str(error))

    def _unknown_for_long(self) -> bool:
        now = monotonic()
        if self._unknown_since is None:
            self._unknown_since = now
        return (now - self._unknown_since) * 1000 >= self._brokers.config.unknown_for_ms

    def _first_offset(self) -> int:
        from loadwise.spark_source.cluster.client import connected  # noqa: PLC0415 - librdkafka: where something is lost
        from loadwise.spark_source.cluster.offsets import Cluster  # noqa: PLC0415 - see above

        at, options = self._reading, self._reading.options
        with connected(options.client, group_id_prefix=options.group_id_prefix) as client:
            return Cluster(client, options.look_up_ms).offsets(EARLIEST, [at.place])[at.place]

    def _why(self) -> str:
        """Return the last complaint as the end of a message; empty without one."""
        unanswered = f"{self._brokers.asked} has not answered" if self._brokers.asked else ""
        complaint = self._complaint or unanswered
        return f" (the client's last error: {complaint})" if complaint else ""

    def _note(self, complaint: str) -> None:
        if complaint != self._complaint:
            logger.warning("%s", complaint)
        self._complaint = complaint

    def batches(self, answer: Fetched, builder: BatchBuilder) -> Iterator[pa.RecordBatch]:
        """Yield the records of an answer as Arrow batches of bounded size."""
        at, config, most_records = self._reading, self._brokers.config, self._reading.options.client.max_poll_records
        for found in record_sets(
            answer.records,
            at.position,
            at.wanted.end,
            check_crcs=config.check_crcs,
            aborted=answer.aborted if config.read_committed else None,
        ):
            try:
                records = Records(found)
                for rows in records.slices(most_records=most_records, most_bytes=position.BATCH_BYTES):
                    yield builder.batch(*at.place, rows.stop - rows.start, records.columns(builder.wanted, rows))
                at.position = found.next_offset
                if found.problem is not None:
                    raise found.problem
            except BatchError as error:
                if isinstance(error, OtherReaderError) and not at.options.reader_is_given:
                    raise
                raise at.refused(error.problem, error.remedy) from None
