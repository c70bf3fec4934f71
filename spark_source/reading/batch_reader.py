"""Reads offset ranges as whole record batches: Fetch by aiokafka's connections, columns by numpy and Arrow.

While Spark takes one answer's records, Kafka sends the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from time import monotonic
from typing import Any

from loadwise.assignor.model import TopicPartition
from loadwise.protocol.error_codes import ErrorCode
from loadwise.spark_source.errors import START_BEHIND, BatchError
from loadwise.spark_source.options.connection_config import connection_config
from loadwise.spark_source.options.query import EARLIEST, SourceOptions
from loadwise.spark_source.reading import position
from loadwise.spark_source.reading.arrow_batches import BatchBuilder
from loadwise.spark_source.reading.brokers import PASSING, AnsweredError, Brokers, UnreachableError, tls_context
from loadwise.spark_source.reading.position import CHECK_OPTIONS, MAY_READ, Reading
from loadwise.spark_source.reading.record_columns import Records
from loadwise.spark_source.reading.record_sets import RecordSet, record_set
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

_REMEDIES = {
    ErrorCode.CORRUPT_MESSAGE: f"the batch there is corrupt on the broker: {START_BEHIND}",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: MAY_READ,
    ErrorCode.UNSUPPORTED_VERSION: "set reader=messages, whose client speaks to other versions of Kafka",
}
"""What to do about errors that trying again does not mend."""


def read_ranges(ranges: Sequence[OffsetRange], options: SourceOptions, builder: BatchBuilder) -> Iterator[Any]:
    """Yield the records of the ranges as Arrow RecordBatches. Raises what `read_task` raises."""
    config = connection_config(options.client.settings)
    tls = tls_context(config.tls) if config.tls else None
    with asyncio.Runner() as runner:
        brokers = Brokers(config, tls)
        try:
            for wanted, following in pairwise((*ranges, None)):
                assert wanted is not None, "only what follows the last is None"
                ranged = _RangeReader(Reading(wanted, options), brokers, following)
                while (found := runner.run(ranged.next_records())) is not None:
                    yield from ranged.batches(found, builder)
        finally:
            runner.run(brokers.close())


class _RangeReader:
    def __init__(self, at: Reading, brokers: Brokers, following: OffsetRange | None) -> None:
        self._reading = at
        self._brokers = brokers
        self._following = following
        self._complaint = ""
        self._unknown_since: float | None = None
        """Since when brokers have said that there is no such topic or partition."""
        at.position = at.wanted.start

    async def next_records(self) -> RecordSet | None:
        """What the next answer holds of the range; None at its end."""
        at, config = self._reading, self._brokers.config
        at.renew()
        pause_s = config.retry_backoff_ms / 1000
        while at.position < at.wanted.end:
            try:
                async with asyncio.timeout(at.left_s):
                    found = await self._fetched()
                    if found is not None:
                        return found
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, config.retry_backoff_max_ms / 1000)
            except TimeoutError:
                if not at.left_s:
                    raise at.too_late(self._why()) from None
        return None

    async def _fetched(self) -> RecordSet | None:
        """The next answer's records; None if there was nothing in it, or none came."""
        at, config = self._reading, self._brokers.config
        try:
            answer = await self._brokers.fetch(at.place, at.position)
        except UnreachableError as error:
            self._note(str(error))
            return None
        except AnsweredError as error:
            self._answered(error)
            return None
        self._unknown_since = None
        found = record_set(
            answer.records,
            at.position,
            at.wanted.end,
            check_crcs=config.check_crcs,
            aborted=answer.aborted if config.read_committed else None,
        )
        if found.problem is not None:
            return found
        if found.next_offset == at.position:
            return None  # nothing there yet, or not a whole batch, which Kafka never sends
        if found.next_offset < at.wanted.end:
            await self._brokers.fetch_ahead(at.place, found.next_offset)
        elif self._following is not None:
            following = self._following
            await self._brokers.fetch_ahead(TopicPartition(following.topic, following.partition), following.start)
        return found

    def _answered(self, error: AnsweredError) -> None:
        at = self._reading
        if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            at.lose(str(error), at.left(self._first_offset()))
        elif error.code not in PASSING:
            raise at.refused(str(error), _REMEDIES.get(error.code, CHECK_OPTIONS))
        elif error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and self._unknown_for_long():
            at.lose("there is no such topic or partition", at.wanted.end)
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
            return Cluster(client, options.client.api_timeout_ms).offsets(EARLIEST, [at.place])[at.place]

    def _why(self) -> str:
        """The last complaint as the end of a message; empty if there is none."""
        unanswered = f"{self._brokers.asked} has not answered" if self._brokers.asked else ""
        complaint = self._complaint or unanswered
        return f" (the client's last error: {complaint})" if complaint else ""

    def _note(self, complaint: str) -> None:
        if complaint != self._complaint:
            logger.warning("%s", complaint)
        self._complaint = complaint

    def batches(self, found: RecordSet, builder: BatchBuilder) -> Iterator[Any]:
        """The records as Arrow batches of bounded size."""
        at = self._reading
        try:
            records = Records(found)
            for rows in records.slices(most_records=at.most_records, most_bytes=position.BATCH_BYTES):
                count = rows.stop - rows.start
                yield builder.assemble(*at.place, count, partial(records.column, rows=rows))
            at.position = found.next_offset
            if found.problem is not None:
                raise found.problem
        except BatchError as error:
            raise at.refused(error.problem, error.remedy) from None
