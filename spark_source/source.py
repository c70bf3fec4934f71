"""``format("loadwise")``: the data source that Spark finds, and the way of a batch query through this package.

::

    load()                 options.parse.parse      wrong options are refused here
    planning (a process    planning.ranges.resolve  what is there: an offset range per partition
    of Spark's own)        planning.plan.plan       the assignor shares it out: task i is member slot-i
    each task              reading.tasks.read_task  its ranges, as Arrow batches

Each step runs in a process of its own, so the source carries the options as text and nothing else. Streaming queries
are `loadwise.spark_source.stream`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

from loadwise.spark_source.garbage import exclude_what_is_loaded
from loadwise.spark_source.options.bounds import Everywhere
from loadwise.spark_source.options.query import SourceOptions, parse_either
from loadwise.spark_source.planning.assignors import assignor_named
from loadwise.spark_source.planning.query import check_installed, checked, planned_by
from loadwise.spark_source.pyspark_version import NAMES_START, needs_pyspark, refuse_what_needs_later
from loadwise.spark_source.task import Task

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType
except ImportError as error:
    raise needs_pyspark() from error

from loadwise.spark_source.reading.arrow_batches import BatchBuilder, check_schema, full_schema

logger = logging.getLogger(__name__)


class LoadwiseDataSource(DataSource):
    """Kafka topics as a DataFrame whose tasks follow an assignment."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "loadwise"

    def schema(self) -> StructType:
        """The columns of Spark's Kafka integration. This is what load() runs, of a batch as of a stream.

        Raises `OptionError`, `MissingDependencyError`.
        """
        check_installed()
        refuse_what_needs_later(self.options, streaming=False)
        options = parse_either(self.options)
        assignor_named(options.plan.assignor)
        exclude_what_is_loaded()
        return full_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader for the columns that are wanted. Raises `SchemaError`, and what `checked` raises.

        With a schema of the user's, Spark calls nothing of ours in load(): then this is the first to see the options.
        """
        options = checked(self.options)
        check_schema(schema, include_headers=options.include_headers)
        return LoadwiseReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - as Spark calls it
        """A stream's reader for the columns that are wanted. Raises nothing: the reader's methods do.

        Where this raises, PySpark's own process fails at something else and hides why.
        """
        # What is imported costs each process that Spark starts for a batch, where there is no stream.
        from loadwise.spark_source.member_stream import LoadwiseMemberReader  # noqa: PLC0415 - see above
        from loadwise.spark_source.stream import LoadwiseStreamReader  # noqa: PLC0415 - see above

        mode = {name.lower(): value for name, value in self.options.items()}.get("assignment.mode", "")
        member = NAMES_START and mode.strip().lower() == "member"
        made = LoadwiseMemberReader if member else LoadwiseStreamReader
        return made(dict(self.options), schema)


@cache
def _say_how_long_a_plan_lasts() -> None:
    """Log, once a process, that PySpark plans once for each DataFrame. It is so for every batch: nothing is wrong."""
    logger.info("every action on a DataFrame reads up to the offsets that its first one found; load() looks again")


class LoadwiseReader(DataSourceReader):
    """Plans a batch query, and reads its tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One input partition for each task of the plan that has something to read. Raises what `planned` raises."""
        # This runs in a process of Spark's, where nobody else can ask for the plan to be logged. It goes to Spark's own
        # log of its Python processes (spark.sql.pyspark.worker.logging.enabled), and nowhere by default.
        logger.setLevel(logging.INFO)
        found = planned_by(self._options)
        exclude_what_is_loaded()
        logger.info("%s", found)
        if isinstance(self._options.ending, Everywhere):
            _say_how_long_a_plan_lasts()
        # Of no partitions Spark makes one, without a value.
        return [InputPartition(task) for task in found.filled or found.tasks[:1]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow batches. Raises what `read_task` raises."""
        from loadwise.spark_source.reading.tasks import read_task  # noqa: PLC0415 - needs its libraries: see check_installed

        task: Task = partition.value
        return read_task(task, self._options, BatchBuilder(self._schema))
