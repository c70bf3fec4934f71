"""The data source ``format("loadwise")``, and the way of a batch query through this package.

::

    load()                 options.query.parse      refuses wrong options
    planning (a process    planning.ranges.resolve  finds the offset range of each partition
    of Spark's own)        planning.plan.plan       the assignor shares them among tasks: task i is member slot-i
    each task              reading.tasks.read_task  reads its ranges into Arrow batches

Each step runs in its own process, so the source carries only the text of the options. Streaming queries are
`loadwise.spark_source.stream`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from loadwise.spark_source.errors import OnlyReadsError
from loadwise.spark_source.options.bounds import Everywhere
from loadwise.spark_source.options.query import SourceOptions, parse_either
from loadwise.spark_source.planning.query import assignor_named, check_installed, checked, planned_by
from loadwise.spark_source.pyspark_version import NAMES_START, needs_pyspark, refuse_what_needs_later
from loadwise.spark_source.reuse import exclude_what_is_loaded
from loadwise.spark_source.task import Task

try:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
        InputPartition,
    )
    from pyspark.sql.types import StructType
except ImportError as error:
    raise needs_pyspark() from error

from loadwise.spark_source.reading.arrow_batches import check_schema, full_schema

if TYPE_CHECKING:
    import pyarrow as pa

logger = logging.getLogger(__name__)

_ONLY_READS = "loadwise reads; write with format('kafka')"


class LoadwiseDataSource(DataSource):
    """Kafka topics as a DataFrame whose tasks follow an assignment."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "loadwise"

    def schema(self) -> StructType:
        """Return the columns of Spark's Kafka integration. Spark calls this in load(), for batches and streams.

        Raises `OptionError`, `MissingDependencyError`.
        """
        check_installed()
        refuse_what_needs_later(self.options, streaming=False)
        options = parse_either(self.options)
        assignor_named(options.plan.assignor)
        exclude_what_is_loaded()
        return full_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a batch reader for these columns. Raises `SchemaError`, and the errors of `checked`.

        With the user's own schema Spark does not call `schema` in load(); then the options are first checked here.
        """
        options = checked(self.options)
        check_schema(schema, include_headers=options.include_headers)
        return LoadwiseReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - as Spark calls it
        """Return a stream's reader for these columns. Raises nothing; the reader's methods do.

        If this raised, PySpark's process would fail with another error and hide the reason.
        """
        # Batches do not need these imports, and each process that Spark starts would pay for them.
        from loadwise.spark_source.member_stream import LoadwiseMemberReader  # noqa: PLC0415 - see above
        from loadwise.spark_source.stream import LoadwiseStreamReader  # noqa: PLC0415 - see above

        mode = {name.lower(): value for name, value in self.options.items()}.get("assignment.mode", "")
        member = NAMES_START and mode.strip().lower() == "member"
        made = LoadwiseMemberReader if member else LoadwiseStreamReader
        return made(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: ARG002 - as Spark calls it
        """Refuse to write a DataFrame: `OnlyReadsError`."""
        raise OnlyReadsError(_ONLY_READS)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: ARG002, N802 - likewise
        """Refuse to write a stream: `OnlyReadsError`."""
        raise OnlyReadsError(_ONLY_READS)


@cache
def _say_how_long_a_plan_lasts() -> None:
    """Log once in each process that PySpark plans a DataFrame once, not for each action."""
    logger.info("all actions on a DataFrame read the same offsets as the first; call load() again for newer ones")


class LoadwiseReader(DataSourceReader):
    """Plans a batch query and reads its tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """Return one input partition for each task of the plan with records. Raises the errors of `planned`."""
        # A user cannot set the level in this process of Spark's. The line goes to Spark's own log of its Python
        # processes (spark.sql.pyspark.worker.logging.enabled), and nowhere by default.
        logger.setLevel(logging.INFO)
        found = planned_by(self._options)
        exclude_what_is_loaded()
        logger.info("%s", found)
        if isinstance(self._options.ending, Everywhere):
            _say_how_long_a_plan_lasts()
        # Without partitions Spark would make one without a value.
        return [InputPartition(task) for task in found.filled or found.tasks[:1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task as Arrow batches. Raises the errors of `read_task`."""
        from loadwise.spark_source.reading.tasks import read_task  # noqa: PLC0415 - needs its libraries: see check_installed

        task: Task = partition.value
        return read_task(task, self._options, self._schema)
