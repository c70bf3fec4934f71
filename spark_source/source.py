"""``format("loadwise")``: the data source that Spark finds, and the way of a batch query through this package.

::

    load()                 options.parse            wrong options are refused here
    planning (a process    offsets.resolve          what is there: an offset range per partition
    of Spark's own)        plan.plan                the assignor shares it out: task i is member slot-i
    each task              reader.read_task         its ranges, as Arrow batches

Each step runs in a process of its own, so the source carries the options as text and nothing else. Streaming queries
are `loadwise.spark_source.stream`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from loadwise.installation import pip_install
from loadwise.spark_source.assignors import assignor_named
from loadwise.spark_source.errors import MissingDependencyError
from loadwise.spark_source.options import SourceOptions, parse, parse_either
from loadwise.spark_source.plan import OffsetRange, Plan, Task, plan
from loadwise.spark_source.truststores import with_certificates

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType
except ImportError as error:
    raise MissingDependencyError(f"loadwise.spark_source needs pyspark 4.2 or later: {pip_install('spark')}") from error

from loadwise.spark_source.records import BatchBuilder, check_schema, full_schema

logger = logging.getLogger(__name__)

LIBRARIES = {
    "confluent_kafka": "confluent-kafka",
    "pyarrow": "pyarrow",
    "aiokafka": "aiokafka",
    "crc32c": "crc32c",
    "cramjam": "cramjam",
}
"""What reading takes: modules, and the packages that have them."""


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
        options = parse_either(self.options)
        assignor_named(options.assignor)
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
        from loadwise.spark_source.stream import LoadwiseStreamReader  # noqa: PLC0415 - imports this module

        return LoadwiseStreamReader(dict(self.options), schema)


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
        from loadwise.spark_source.reader import read_task  # noqa: PLC0415 - needs confluent-kafka: see check_installed

        task: Task = partition.value
        return read_task(task, self._options, BatchBuilder(self._schema))


def check_installed() -> None:
    """Raise `MissingDependencyError`, which names the extra, unless everything that reading takes is there."""
    for module, name in LIBRARIES.items():
        if find_spec(module) is None:
            raise MissingDependencyError(
                f"format('loadwise') needs {name}, which is not installed: {pip_install('spark')}"
            )


def checked(options: Mapping[str, str], *, streaming: bool = False) -> SourceOptions:
    """The options of a query that can be tried: all are right, and what it takes is installed.

    Raises `OptionError`, `MissingDependencyError`.
    """
    check_installed()
    parsed = parse(options, streaming=streaming)
    assignor_named(parsed.assignor)
    return replace(parsed, client=with_certificates(parsed.client))


def planned(options: Mapping[str, str]) -> Plan:
    """The plan that a query with these options would have now: to look at, without Spark.

    Raises what `checked`, `loadwise.spark_source.offsets.resolve` and
    `loadwise.spark_source.plan.plan` raise.
    """
    return planned_by(checked(options))


def planned_by(options: SourceOptions) -> Plan:
    """As `planned`, of options that were parsed."""
    from loadwise.spark_source.offsets import resolve  # noqa: PLC0415 - needs confluent-kafka: see check_installed

    if options.ignored:
        logger.warning("ignored options: %s", ", ".join(options.ignored))
    return shared_out(resolve(options), options)


def shared_out(ranges: Sequence[OffsetRange], options: SourceOptions, *, sticky: bool = False) -> Plan:
    """The plan for these ranges that the options ask for. Raises `PlanError`, `GroupUnavailableError`."""
    if options.follow_group is not None:
        from loadwise.spark_source.following import follow, owners_of  # noqa: PLC0415 - see check_installed

        return follow(ranges, owners_of(options.client, options.follow_group), options.follow_group)
    return plan(
        ranges,
        assignor_named(options.assignor),
        num_tasks=options.num_tasks,
        split=options.split,
        cost_per_record=options.cost_per_record,
        max_records=options.max_records_per_task,
        sticky=sticky,
    )
