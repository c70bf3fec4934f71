"""Reads offset ranges with librdkafka (confluent-kafka), message by message, into Arrow batches.

A range ends at its end offset even if the offsets before it hold no record (compaction, transaction markers): then the
partition's end, or a record behind the range, shows that nothing more will come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import confluent_kafka
import numpy as np
import pyarrow as pa

from loadwise.spark_source.cluster.client import NO_ANSWER, UNKNOWN, Client, connected
from loadwise.spark_source.cluster.offsets import Cluster
from loadwise.spark_source.errors import OTHERS_MAY_READ, BatchError
from loadwise.spark_source.options.bounds import EARLIEST
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.reading import position
from loadwise.spark_source.reading.arrow_batches import BatchBuilder, Numbers
from loadwise.spark_source.reading.position import CHECK_OPTIONS, MAY_READ, Reading
from loadwise.spark_source.task import OffsetRange

FIRST_FETCH = 500
"""The records of the first call, while their size is unknown."""
POLL_S = 0.2
"""The longest wait of one call; a full call returns at once."""

_Error = confluent_kafka.KafkaError
_OUT_OF_RANGE = frozenset((_Error._AUTO_OFFSET_RESET, _Error.OFFSET_OUT_OF_RANGE))
"""Errors for offsets that do not exist (any more)."""
_PASSING = UNKNOWN | NO_ANSWER
"""Errors after which librdkafka retries by itself."""
_OF_THE_GROUP = frozenset((_Error.GROUP_AUTHORIZATION_FAILED,))
"""librdkafka looks for the coordinator of the group, which we do not need: reading works without rights on it."""

LARGEST_BATCH = {"receive.message.max.bytes": str((1 << 31) - 1)}
"""The largest uncompressed batch for librdkafka, by default 100 MB. Planning clients keep the default: it shows at once
that an address speaks another protocol, whose first bytes look like the size of a larger answer."""

_OTHERS = OTHERS_MAY_READ.format(reader="batches")
_REMEDIES = {
    _Error._BAD_MSG: f"the batch there seems corrupt: to read it anyway set kafka.check.crcs=false; {_OTHERS}",
    _Error._BAD_COMPRESSION: f"this client cannot decompress the batch there: {_OTHERS}",
    _Error._NOT_IMPLEMENTED: f"this client does not support its codec or format: {_OTHERS}",
    _Error.TOPIC_AUTHORIZATION_FAILED: MAY_READ,
}
"""What to do about errors that a retry does not fix."""


def read_ranges(
    ranges: Sequence[OffsetRange], options: SourceOptions, builder: BatchBuilder
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the ranges as Arrow record batches. Raises what `read_task` raises."""
    config = replace(options.client, settings={**options.client.settings, **LARGEST_BATCH})
    with connected(config, group_id_prefix=options.group_id_prefix) as client:
        for wanted in ranges:
            at = Reading(wanted, options)
            for messages in _RangeReader(at, client).batches():
                try:
                    batch = builder.batch(*at.place, len(messages), _columns(builder.wanted, messages))
                except BatchError as error:
                    raise at.refused(error.problem, error.remedy) from None
                yield batch


@dataclass(slots=True)
class _RangeReader:
    at: Reading
    client: Client
    mean_bytes: float = position.BATCH_BYTES / FIRST_FETCH
    """The mean size of a value in the latest batch."""

    def batches(self) -> Iterator[list[confluent_kafka.Message]]:
        """Yield the range's messages in lists of bounded size."""
        at, most_bytes = self.at, position.BATCH_BYTES
        self._seek(at.wanted.start)
        limit = at.options.client.max_poll_records
        batch: list[confluent_kafka.Message] = []
        size = 0
        at.renew()
        while at.position < at.wanted.end:
            room = min(limit - len(batch), max(1, int((most_bytes - size) / self.mean_bytes)))
            before = at.position
            taken = self._take(min(room, at.wanted.end - at.position), min(POLL_S, at.options.poll_timeout_ms / 1000))
            batch += taken
            size += sum(map(len, taken))
            if batch:
                self.mean_bytes = max(1.0, size / len(batch))
            if len(batch) >= limit or size >= most_bytes:
                yield batch
                batch, size = [], 0
                at.renew()  # the time that Spark took for the batch does not count
            elif at.position > before:
                at.renew()
            elif self.client.doubtful:
                self._check_that_it_is_there()
            elif not at.left_s:
                raise at.too_late(self.client.why())
        if batch:
            yield batch

    def _seek(self, offset: int) -> None:
        place = self.at.place
        self.at.position = offset
        self.client.consumer.assign([confluent_kafka.TopicPartition(*place, offset)])

    def _take(self, count: int, wait_s: float) -> list[confluent_kafka.Message]:
        """Take up to ``count`` messages of the range, and move the position behind them."""
        at = self.at
        messages: list[confluent_kafka.Message] = []
        for message in self.client.consumer.consume(count, wait_s):
            error = message.error()
            if error is None:
                offset = message.offset()
                if offset >= at.wanted.end:
                    at.position = at.wanted.end
                    break
                messages.append(message)
                at.position = offset + 1
            elif error.code() == _Error._PARTITION_EOF:
                at.position = max(at.position, min(message.offset(), at.wanted.end))
            elif error.code() in _OUT_OF_RANGE:
                self._lose(error.str(), at.left(self._cluster.offsets(EARLIEST, [at.place])[at.place]))
                break
            elif error.code() in _OF_THE_GROUP:
                continue
            elif error.code() in _PASSING:
                self.client.note(error)
            else:
                raise at.refused(error.str(), _REMEDIES.get(error.code(), CHECK_OPTIONS))
        return messages

    def _check_that_it_is_there(self) -> None:
        self.client.doubtful = False
        if not self._cluster.there([self.at.place]):
            self._lose("the topic or partition does not exist", self.at.wanted.end)

    def _lose(self, problem: str, resume: int) -> None:
        self.at.lose(problem, resume)
        if resume < self.at.wanted.end:
            self._seek(resume)

    @property
    def _cluster(self) -> Cluster:
        return Cluster(self.client, self.at.options.look_up_ms)


def _columns(
    wanted: Mapping[str, pa.DataType], messages: Sequence[confluent_kafka.Message]
) -> dict[str, pa.Array | Numbers]:
    return {name: _column(name, kind, messages) for name, kind in wanted.items()}


def _column(name: str, kind: pa.DataType, messages: Sequence[confluent_kafka.Message]) -> pa.Array | Numbers:
    match name:
        case "key":
            return pa.array([message.key() for message in messages], kind)
        case "value":
            return pa.array([message.value() for message in messages], kind)
        case "offset":
            return pa.array([message.offset() for message in messages], kind)
        case "timestamp":
            return np.fromiter((message.timestamp()[1] for message in messages), np.int64, len(messages))
        case "timestampType":
            # librdkafka counts from 0 (not available), Kafka's TimestampType from -1.
            return pa.array([message.timestamp()[0] - 1 for message in messages], kind)
        case _:
            return pa.array([_headers(message) for message in messages], kind)


def _headers(message: confluent_kafka.Message) -> list[dict[str, object]] | None:
    """Null without headers, as in Spark's Kafka integration."""
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None
