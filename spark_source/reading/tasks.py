"""Reads what one task was given, its offset ranges one after the other, into Arrow batches of bounded size.

Two readers do it, by the option ``reader``: `batch_reader` decodes whole record batches into columns, and
`message_reader` has librdkafka make messages. Both end a range at its end offset even if
the offsets before it hold no record, and neither hangs: a range that gets nothing for ``kafkaConsumer.pollTimeoutMs``
fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadwise.spark_source.errors import MissingDependencyError
from loadwise.spark_source.garbage import exclude_what_is_loaded
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.reading.arrow_batches import BatchBuilder
from loadwise.spark_source.task import Task


def read_task(task: Task, options: SourceOptions, builder: BatchBuilder) -> Iterator[Any]:
    """Yield the task's records as Arrow RecordBatches, range by range and in the order of offsets.

    Raises `DataLossError` (``failOnDataLoss``), `ReadTimeoutError`, `ReadError`, and `MissingDependencyError` on an
    executor that lacks what the planner has.
    """
    if not task.ranges:
        return iter(())
    if options.reader == "messages":
        from loadwise.spark_source.reading import message_reader  # noqa: PLC0415 - each needs its own client, and no other

        exclude_what_is_loaded()
        return message_reader.read_ranges(task.ranges, options, builder)
    try:
        from loadwise.spark_source.reading import batch_reader  # noqa: PLC0415 - see above
    except ImportError as error:
        library = str(error.name).partition(".")[0]
        raise MissingDependencyError(
            f"reading Kafka from Spark needs {library}, which is not installed where this task runs: install it"
            " there, or set reader=messages"
        ) from error
    exclude_what_is_loaded()
    return batch_reader.read_ranges(task.ranges, options, builder)
