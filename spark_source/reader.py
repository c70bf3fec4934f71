"""Reads what one task was given: its offset ranges, one after the other, into Arrow batches of bounded size.

A range ends at its end offset even if the offsets before it hold no record (compaction, transaction markers): then the
partition's end, or a record behind the range, says that there is nothing more to come. Nothing hangs: a range that
gets nothing for ``kafkaConsumer.pollTimeoutMs`` fails, naming topic, partition and offset.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.client import UNKNOWN, Client, connected
from loadwise.spark_source.errors import DataLossError, ReadError, ReadTimeoutError
from loadwise.spark_source.offsets import Cluster
from loadwise.spark_source.options import EARLIEST, SourceOptions
from loadwise.spark_source.plan import OffsetRange, Task
from loadwise.spark_source.records import BatchBuilder

logger = logging.getLogger(__name__)

BATCH_RECORDS = 10_000
"""Most records in an Arrow batch, as Spark's own ``spark.sql.execution.arrow.maxRecordsPerBatch``."""
BATCH_BYTES = 16 << 20
"""About how many bytes of values an Arrow batch may hold; a single one may be larger."""
FIRST_FETCH = 500
"""Records asked for before anything is known about their size."""
POLL_S = 0.2
"""How long one call waits for its records to be complete. Not a delay: a full call returns at once."""

_Error = confluent_kafka.KafkaError
_OUT_OF_RANGE = frozenset((_Error._AUTO_OFFSET_RESET, _Error.OFFSET_OUT_OF_RANGE))
"""Answers that mean: these offsets are not there (any more)."""
_PASSING = frozenset((_Error._ALL_BROKERS_DOWN, _Error._TRANSPORT, _Error._TIMED_OUT, _Error._RESOLVE)) | UNKNOWN
"""Answers after which librdkafka goes on trying by itself."""

_START_BEHIND = "start a new query behind it (startingOffsets)"
_REMEDIES = {
    _Error._BAD_MSG: f"the batch there is corrupt: read it anyway with kafka.check.crcs=false, or {_START_BEHIND}",
    _Error._BAD_COMPRESSION: f"the batch there cannot be decompressed: {_START_BEHIND}",
    _Error._NOT_IMPLEMENTED: f"this client knows no such codec or format: {_START_BEHIND}",
    _Error.TOPIC_AUTHORIZATION_FAILED: "give this user (kafka.sasl.*, kafka.ssl.*) the right to READ the topic",
    _Error.GROUP_AUTHORIZATION_FAILED: "give this user (kafka.sasl.*, kafka.ssl.*) the right to READ kafka.group.id",
}
"""What to do about errors that trying again does not mend."""


def read_task(task: Task, options: SourceOptions, builder: BatchBuilder) -> Iterator[Any]:
    """Yield the task's records as Arrow RecordBatches, each of one partition and in the order of offsets.

    Raises `DataLossError` (``failOnDataLoss``), `ReadTimeoutError`, `ReadError`.
    """
    if not task.ranges:
        return
    with connected(options.client, group_id_prefix=options.group_id_prefix) as client:
        for wanted in task.ranges:
            for messages in _RangeReader(client, wanted, options).batches():
                yield builder.build(wanted.topic, wanted.partition, messages)


@dataclass(slots=True)
class _RangeReader:
    client: Client
    wanted: OffsetRange
    options: SourceOptions
    position: int = -1
    """The next offset to be read."""
    mean_bytes: float = BATCH_BYTES / FIRST_FETCH
    """Bytes of a value, by those of the latest batch."""

    def batches(self) -> Iterator[list[Any]]:
        """Yield the range's messages in lists of bounded size."""
        self._seek(self.wanted.start)
        limit = min(self.options.client.max_poll_records or BATCH_RECORDS, BATCH_RECORDS)
        timeout_s = self.options.poll_timeout_ms / 1000
        deadline = monotonic() + timeout_s
        batch: list[Any] = []
        size = 0
        while self.position < self.wanted.end:
            room = min(limit - len(batch), max(1, int((BATCH_BYTES - size) / self.mean_bytes)))
            before = self.position
            taken = self._take(min(room, self.wanted.end - self.position), min(POLL_S, timeout_s))
            batch += taken
            size += sum(map(len, taken))
            if batch:
                self.mean_bytes = max(1.0, size / len(batch))
            if len(batch) >= limit or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
                deadline = monotonic() + timeout_s  # the time that Spark took over the batch is not Kafka's
            elif self.position > before:
                deadline = monotonic() + timeout_s
            elif self.client.doubtful:
                self._check_that_it_is_there()
            elif monotonic() > deadline:
                raise self._too_late()
        if batch:
            yield batch

    def _seek(self, offset: int) -> None:
        self.position = offset
        self.client.consumer.assign([confluent_kafka.TopicPartition(self.wanted.topic, self.wanted.partition, offset)])

    def _take(self, count: int, wait_s: float) -> list[Any]:
        """Take up to ``count`` messages of the range, and move the position behind what was seen."""
        messages: list[Any] = []
        for message in self.client.consumer.consume(count, wait_s):
            error = message.error()
            if error is None:
                offset = message.offset()
                if offset >= self.wanted.end:
                    self.position = self.wanted.end
                    break
                messages.append(message)
                self.position = offset + 1
            elif error.code() == _Error._PARTITION_EOF:
                self.position = max(self.position, min(message.offset(), self.wanted.end))
            elif error.code() in _OUT_OF_RANGE:
                self._lose(error.str(), self._first_that_is_left())
                break
            elif error.code() in _PASSING:
                self.client.note(error)
            else:
                remedy = _REMEDIES.get(error.code(), "check the kafka.* options and the rights of this user")
                raise ReadError(f"cannot read {self._where()}: {error.str()}; {remedy}")
        return messages

    def _check_that_it_is_there(self) -> None:
        self.client.doubtful = False
        if not self._cluster.has(self._place):
            self._lose("there is no such topic or partition", self.wanted.end)

    def _first_that_is_left(self) -> int:
        first = self._cluster.offsets(EARLIEST, [self._place])[self._place]
        # A position behind the partition's end is out of range too, and then nothing of the range is left.
        return first if self.position < first < self.wanted.end else self.wanted.end

    def _lose(self, problem: str, resume: int) -> None:
        """Fail for what is gone, or go on behind it, as ``failOnDataLoss`` says."""
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{self._where()} is gone: {problem}; set failOnDataLoss=false to read what there is")
        logger.warning(
            "%s is gone: %s; going on at offset %d, since failOnDataLoss=false", self._where(), problem, resume
        )
        if resume < self.wanted.end:
            self._seek(resume)
        self.position = resume

    @property
    def _place(self) -> TopicPartition:
        return TopicPartition(self.wanted.topic, self.wanted.partition)

    @property
    def _cluster(self) -> Cluster:
        return Cluster(self.client, self.options.client.api_timeout_ms)

    def _too_late(self) -> ReadTimeoutError:
        return ReadTimeoutError(
            f"no record of {self._where()} arrived for {self.options.poll_timeout_ms} ms{self.client.why()}; check"
            " kafka.bootstrap.servers and the brokers, or raise kafkaConsumer.pollTimeoutMs"
        )

    def _where(self) -> str:
        return f"{self.wanted.topic}-{self.wanted.partition} at offset {self.position} (of {self.wanted})"
