"""The shape of what is read: Spark's columns for Kafka records, as Arrow batches.

The schema is that of Spark's Kafka integration (``KafkaRecordToRowConverter``). A user's own schema of fewer columns
(``.schema("value binary")``) prunes: a column that nobody asked for is never built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError, SchemaError
from loadwise.spark_source.pyspark_version import arrow_schema
from loadwise.spark_source.reading.timestamps import microseconds

HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

COLUMNS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
"""The columns without ``includeHeaders``."""


def full_schema(*, include_headers: bool) -> StructType:
    """All columns that a query can have."""
    return StructType([*COLUMNS.fields, *([StructField("headers", HEADERS)] if include_headers else [])])


def check_schema(asked: StructType, *, include_headers: bool) -> None:
    """Raise `SchemaError` unless every column is one of ours, of our type. Order and nullability are the user's."""
    names = [column.name for column in asked]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise SchemaError(f"schema: column {doubled} is there twice; select it again with DataFrame operations")
    ours = {column.name: column.dataType for column in full_schema(include_headers=include_headers)}
    for column in asked:
        if column.name == "headers" and not include_headers:
            raise SchemaError("schema: column headers needs the option includeHeaders=true")
        if column.name not in ours:
            raise SchemaError(f"schema: there is no column {column.name}; there are {', '.join(ours)}")
        if column.dataType != ours[column.name]:
            wanted = ours[column.name].simpleString()
            raise SchemaError(
                f"schema: column {column.name} is of type {wanted}, not {column.dataType.simpleString()}; cast it with"
                " DataFrame operations"
            )


FEW_RECORDS, FEW_BYTES = 1_000, 64 << 10
"""Smaller batches are joined up to these: what Spark does for each costs more than the records in it."""


def joined(batches: Iterator[Any], most_records: int) -> Iterator[Any]:
    """The same records in the same order, in fewer Arrow batches where these are small, and no larger than allowed."""
    few = min(FEW_RECORDS, most_records)
    held: list[Any] = []
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


def _one_of(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    import pyarrow as pa  # noqa: PLC0415 - the caller has batches of it

    return pa.concat_batches(batches)


class BatchBuilder:
    """Turns messages of one partition into Arrow record batches of one schema."""

    def __init__(self, schema: StructType) -> None:
        """Raises `MissingDependencyError` without pyarrow."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - optional; Spark's own errors about it do not name our extra
        except ImportError as error:
            raise MissingDependencyError(
                f"reading Kafka from Spark needs pyarrow, which is not installed: {pip_install('spark')}"
            ) from error
        self._pa = pa
        self._schema = arrow_schema(schema)

    def build(self, topic: str, partition: int, messages: Sequence[Any]) -> Any:
        """A RecordBatch with a row for each of librdkafka's messages, in their order."""
        return self.assemble(topic, partition, len(messages), lambda name, kind: self._column(name, kind, messages))

    def assemble(self, topic: str, partition: int, count: int, column: Callable[[str, Any], Any]) -> Any:
        """A RecordBatch of ``count`` rows, of what ``column`` answers for the name and Arrow's type of each column.

        It is not asked for ``topic`` and ``partition``.
        """
        pa = self._pa
        constants: dict[str, object] = {"topic": topic, "partition": partition}
        arrays = [
            pa.repeat(pa.scalar(constants[field.name], field.type), count)
            if field.name in constants
            else column(field.name, field.type)
            for field in self._schema
        ]
        if not arrays:  # count() with an empty schema: only the number of rows is wanted
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, name: str, kind: Any, messages: Sequence[Any]) -> Any:
        pa = self._pa
        count = len(messages)
        match name:
            case "key":
                return pa.array([message.key() for message in messages], kind)
            case "value":
                return pa.array([message.value() for message in messages], kind)
            case "offset":
                return pa.array(np.fromiter((message.offset() for message in messages), np.int64, count))
            case "timestamp":
                milliseconds = np.fromiter((message.timestamp()[1] for message in messages), np.int64, count)
                return pa.array(microseconds(milliseconds)).cast(kind)
            case "timestampType":
                # librdkafka counts from 0 (not available), Kafka's TimestampType from -1.
                return pa.array(np.fromiter((message.timestamp()[0] - 1 for message in messages), np.int32, count))
            case _:
                return pa.array([_headers(message) for message in messages], kind)


def _headers(message: Any) -> list[dict[str, object]] | None:
    """Null where there are none, as in Spark's Kafka integration."""
    headers = message.headers()
    return [{"key": key, "value": value} for key, value in headers] if headers else None
