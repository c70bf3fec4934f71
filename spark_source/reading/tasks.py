"""Reads one task: its offset ranges one after the other, into Arrow batches of bounded size.

The option ``reader`` chooses the reader: `batch_reader` decodes whole record batches into columns; in `message_reader`
librdkafka makes messages. Both end a range at its end offset even if the offsets before it hold no record. A range that
gets nothing for ``kafkaConsumer.pollTimeoutMs`` fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.reading.arrow_batches import BatchBuilder
from loadwise.spark_source.reuse import exclude_what_is_loaded
from loadwise.spark_source.task import Task

if TYPE_CHECKING:
    import pyarrow as pa

FEW_RECORDS, FEW_BYTES = 1_000, 64 << 10
"""Smaller batches are joined up to these: Spark's work for each batch costs more than the records in it."""


def read_task(task: Task, options: SourceOptions, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Yield the task's records as Arrow record batches, range by range and in the order of offsets.

    Raises `DataLossError` (``failOnDataLoss``), `ReadTimeoutError`, `ReadError`, and `MissingDependencyError` on an
    executor that lacks a library of the planner.
    """
    if not task.ranges:
        return iter(())
    builder = BatchBuilder(schema)
    if options.reader == "messages":
        from loadwise.spark_source.reading import message_reader  # noqa: PLC0415 - each needs its own client, and no other

        read_ranges = message_reader.read_ranges
    else:
        try:
            from loadwise.spark_source.reading import batch_reader  # noqa: PLC0415 - see above
        except ImportError as error:
            library = str(error.name).partition(".")[0]
            raise MissingDependencyError(
                f"reading Kafka from Spark needs {library}, which is not installed where this task runs; get it"
                f" there with: {pip_install('spark')}; or set reader=messages"
            ) from error
        read_ranges = batch_reader.read_ranges
    exclude_what_is_loaded()
    return joined(read_ranges(task.ranges, options, builder), options.client.max_poll_records)


def joined(batches: Iterator[pa.RecordBatch], most_records: int) -> Iterator[pa.RecordBatch]:
    """Yield the same records in fewer batches where these are small, and no larger than allowed."""
    few = min(FEW_RECORDS, most_records)
    held: list[pa.RecordBatch] = []
    records = size_bytes = 0
    for batch in batches:
        if held and (records + batch.num_rows > few or size_bytes + batch.nbytes > FEW_BYTES):
            yield _one_of(held)
            held, records, size_bytes = [], 0, 0
        held.append(batch)
        records += batch.num_rows
        size_bytes += batch.nbytes
        if records >= few or size_bytes >= FEW_BYTES:
            yield _one_of(held)
            held, records, size_bytes = [], 0, 0
    if held:
        yield _one_of(held)


def _one_of(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    import pyarrow as pa  # noqa: PLC0415 - the caller has batches of it

    return pa.concat_batches(batches)
