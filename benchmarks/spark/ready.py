"""A Python source of ready-made batches: the cost of Spark's Python data source API by itself.

It has the columns and about the bytes of what the others read, and neither plans, fetches nor decodes: its tasks hand
one Arrow batch to Spark over and over. What a query with it takes is the floor for every source in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from loadwise.spark_source.reading.arrow_batches import COLUMNS

BATCH_RECORDS = 10_000
TOPIC = f"uniform-{'0' * 36}"
VALUE = b"v" * 100


class ReadySource(DataSource):
    """A number of records in a number of tasks; a stream has as many as a file has bytes."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "ready"

    def schema(self) -> StructType:
        """Those of Kafka's records."""
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        """For a batch query."""
        return ReadyReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - as Spark calls it
        """For a stream."""
        return ReadyStreamReader(self.options)


class ReadyReader(DataSourceReader):
    """Returns ready-made batches."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._records = int(options["records"])
        self._tasks = int(options["tasks"])

    def partitions(self) -> list[InputPartition]:
        """Equal shares."""
        return shares(self._records, self._tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The batches of one task."""
        return batches(partition.value)


class ReadyStreamReader(DataSourceStreamReader):
    """Returns the records of each micro-batch in one task."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._file = Path(options["file"])

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark calls it
        """No records."""
        return {"records": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802 - as Spark calls it
        """All records up to now."""
        return {"records": self._file.stat().st_size}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One task."""
        return shares(end["records"] - start["records"], 1)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Its batches."""
        return batches(partition.value)


def shares(records: int, tasks: int) -> list[InputPartition]:
    """An input partition for each task, which holds the number of its records."""
    edges = [records * task // tasks for task in range(tasks + 1)]
    return [InputPartition(edges[task + 1] - edges[task]) for task in range(tasks)]


def batches(records: int) -> Iterator[Any]:
    """Yield ``records`` in batches."""
    for left in range(records, 0, -BATCH_RECORDS):
        yield _batch() if left >= BATCH_RECORDS else _batch().slice(0, left)


@cache
def _batch() -> Any:
    """Once in each process."""
    number, data, text = pa.int32(), pa.binary(), pa.string()
    types = [data, data, text, number, pa.int64(), pa.timestamp("us", "UTC"), number]
    values = {"key": None, "value": VALUE, "topic": TOPIC}
    arrays = [
        pa.array([values.get(name, 0)] * BATCH_RECORDS, kind) for name, kind in zip(COLUMNS.names, types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=COLUMNS.names)
