"""``spark.read.format("loadwise")``: the data source that Spark finds, and the way of a query through this package.

::

    load()                 options.parse            wrong options are refused here
    planning (a process    offsets.resolve          what is there: an offset range per partition
    of Spark's own)        plan.plan                the assignor shares it out: task i is member slot-i
    each task              reader.read_task         its ranges, as Arrow batches

Each step runs in a process of its own, so the source carries the options as text and nothing else. Batch queries only:
streaming is missing, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, NoReturn

from loadwise.spark_source.assignors import assignor_named
from loadwise.spark_source.errors import MissingDependencyError, StreamingUnsupportedError
from loadwise.spark_source.options import SourceOptions, parse
from loadwise.spark_source.plan import Plan, Task, plan

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.types import StructType
except ImportError as error:
    raise MissingDependencyError(
        "loadwise.spark_source needs pyspark 4.2 or later: pip install 'loadwise[spark]'"
    ) from error

from loadwise.spark_source.records import BatchBuilder, check_schema, full_schema

logger = logging.getLogger(__name__)


class LoadwiseDataSource(DataSource):
    """Kafka topics as a DataFrame whose tasks follow an assignment."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format()``."""
        return "loadwise"

    def schema(self) -> StructType:
        """The columns of Spark's Kafka integration. Raises what `checked` raises: this is what load() runs."""
        return full_schema(include_headers=checked(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch reader for the columns that are wanted. Raises `SchemaError`, and what `checked` raises.

        With a schema of the user's, Spark calls nothing of ours in load(): then this is the first to see the options.
        """
        options = checked(self.options)
        check_schema(schema, include_headers=options.include_headers)
        return LoadwiseReader(options, schema)

    def streamReader(self, schema: StructType) -> NoReturn:  # noqa: ARG002, N802 - as Spark calls it
        """Not there. Raises `StreamingUnsupportedError`."""
        raise StreamingUnsupportedError(
            "format('loadwise') reads batches only: use spark.read, or format('kafka') with spark.readStream"
        )

    simpleStreamReader = streamReader  # noqa: N815 - Spark's name; it asks for either


class LoadwiseReader(DataSourceReader):
    """Plans a batch query, and reads its tasks."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        """One input partition a task of the plan, in order. Raises what `planned` raises."""
        # This runs in a process of Spark's, where nobody else can ask for the plan to be logged. It goes to Spark's own
        # log of its Python processes (spark.sql.pyspark.worker.logging.enabled), and nowhere by default.
        logger.setLevel(logging.INFO)
        found = planned_by(self._options)
        logger.info("%s", found)
        return [InputPartition(task) for task in found.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow batches. Raises what `loadwise.spark_source.reader.read_task` raises."""
        from loadwise.spark_source.reader import read_task  # noqa: PLC0415 - needs confluent-kafka: see checked

        task: Task = partition.value
        return read_task(task, self._options, BatchBuilder(self._schema))


def checked(options: Mapping[str, str]) -> SourceOptions:
    """The options of a query that can be tried: all are right, and what it takes is installed.

    Raises `OptionError`, `MissingDependencyError`.
    """
    for module, name in (("confluent_kafka", "confluent-kafka"), ("pyarrow", "pyarrow")):
        if find_spec(module) is None:
            raise MissingDependencyError(
                f"format('loadwise') needs {name}, which is not installed: pip install 'loadwise[spark]'"
            )
    parsed = parse(options)
    assignor_named(parsed.assignor)
    return parsed


def planned(options: Mapping[str, str]) -> Plan:
    """The plan that a query with these options would have now: to look at, without Spark.

    Raises what `checked`, `loadwise.spark_source.offsets.resolve` and
    `loadwise.spark_source.plan.plan` raise.
    """
    return planned_by(checked(options))


def planned_by(options: SourceOptions) -> Plan:
    """As `planned`, of options that were parsed."""
    from loadwise.spark_source.offsets import resolve  # noqa: PLC0415 - needs confluent-kafka: see checked

    if options.ignored:
        logger.warning("ignored options: %s", ", ".join(options.ignored))
    return plan(
        resolve(options),
        assignor_named(options.assignor),
        num_tasks=options.num_tasks,
        split=options.split,
        cost_per_record=options.cost_per_record,
    )
