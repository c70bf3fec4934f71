"""Spark's columns for Kafka records, as Arrow batches.

The schema is that of Spark's Kafka integration (``KafkaRecordToRowConverter``). With a schema of fewer columns
(``.schema("value binary")``) the others are never built.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

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
from loadwise.spark_source.errors import START_BEHIND, BatchError, MissingDependencyError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

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
    """Return all columns that a query can have."""
    return StructType([*COLUMNS.fields, *([StructField("headers", HEADERS)] if include_headers else [])])


def check_schema(asked: StructType, *, include_headers: bool) -> None:
    """Raise `SchemaError` unless every column is one of ours, of our type. Order and nullability are the user's."""
    names = [column.name for column in asked]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise SchemaError(f"schema: column {doubled} occurs twice; copy it with DataFrame operations")
    ours = {column.name: column.dataType for column in full_schema(include_headers=include_headers)}
    for column in asked:
        if column.name == "headers" and not include_headers:
            raise SchemaError("schema: column headers needs the option includeHeaders=true")
        if column.name not in ours:
            raise SchemaError(f"schema: there is no column {column.name}; choose from {', '.join(ours)}")
        if column.dataType != ours[column.name]:
            wanted = ours[column.name].simpleString()
            raise SchemaError(
                f"schema: column {column.name} is of type {wanted}, not {column.dataType.simpleString()}; cast it with"
                " DataFrame operations"
            )


_MOST_MS = ((1 << 63) - 1) // 1000
"""The year 294,247. Spark's own Kafka source fails behind it too, with "long overflow"."""


def microseconds(milliseconds: Numbers) -> Numbers:
    """Return Kafka's timestamps as Spark's. Raises `BatchError` for one that 64 bits cannot hold."""
    beyond = milliseconds[(milliseconds > _MOST_MS) | (milliseconds < -_MOST_MS)]
    if beyond.size:
        raise BatchError(
            f"a record there has the timestamp {beyond[0]} ms, which is too large for Spark",
            f"leave out the column timestamp with .schema(…), or {START_BEHIND}",
        )
    return milliseconds * 1000


class BatchBuilder:
    """Makes Arrow record batches of one schema."""

    def __init__(self, schema: StructType) -> None:
        """Raises `MissingDependencyError` without pyarrow."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - optional; Spark's own errors about it do not name our extra
        except ImportError as error:
            raise MissingDependencyError(
                f"reading Kafka from Spark needs pyarrow, which is not installed; get it with: {pip_install('spark')}"
            ) from error
        self._pa = pa
        self._schema = _arrow_schema(schema)
        self.wanted = {field.name: field.type for field in self._schema if field.name not in ("topic", "partition")}
        """The columns to give to `batch`, with Arrow's type of each."""

    def batch(
        self, topic: str, partition: int, count: int, columns: Mapping[str, pa.Array | Numbers]
    ) -> pa.RecordBatch:
        """Return a batch of ``count`` records of one partition; the column ``timestamp`` comes in Kafka's ms."""
        pa = self._pa
        constants: dict[str, object] = {"topic": topic, "partition": partition}
        arrays = []
        for field in self._schema:
            if field.name in constants:
                arrays.append(pa.repeat(pa.scalar(constants[field.name], field.type), count))
            elif field.name == "timestamp":
                arrays.append(pa.array(microseconds(columns["timestamp"])).cast(field.type))
            else:
                arrays.append(columns[field.name])
        if not arrays:  # count() with an empty schema: only the number of rows is wanted
            return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema that Spark compares a source's batches with. Before PySpark 4.2 times are in UTC anyway."""
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - imports pyarrow

    takes_timezone = "timezone" in signature(to_arrow_schema).parameters
    return to_arrow_schema(schema, timezone="UTC") if takes_timezone else to_arrow_schema(schema)
