"""The errors of ``loadwise.spark_source``.

::

    SparkSourceError                    anything this package refuses or fails at
    ├── OptionError                     an option is missing, wrong, or goes against another one
    │   └── UnknownOptionError          there is no such option, or it is one that this source does not have
    ├── MissingDependencyError          pyspark, pyarrow or confluent-kafka is not installed (names the extra)
    ├── SchemaError                     the schema that the user gave has columns that this source does not have
    ├── PlanError                       the assignor's answer does not give every range to one task
    └── KafkaError                      the cluster cannot answer
        ├── OffsetsUnavailableError     topics, partitions or offsets cannot be found out
        ├── GroupUnavailableError       the group to follow has no members, does not settle, or cannot be seen
        ├── DataLossError               records that the query asks for are gone (``failOnDataLoss``)
        └── ReadError                   a task cannot go on reading
            ├── BatchError              a batch of records is corrupt, or in a form that is not known
            │   └── OtherReaderError    a batch in a form that only ``reader=messages`` reads
            └── ReadTimeoutError        nothing arrived for ``kafkaConsumer.pollTimeoutMs``

Spark hands on only the text of what a Python data source raises, with our text last. So a message is one line, and
that line alone tells what is wrong, where (topic, partition, offset), and which option to change. No message holds a
password.
"""

from __future__ import annotations

START_BEHIND = "start a new query behind it (startingOffsets)"
"""What remains to be done about records that nobody can read."""
OTHERS_MAY_READ = (
    "another reader may read it: set reader={reader}, or use Spark's format('kafka'); only if these fail too,"
    f" {START_BEHIND}"
)
"""What to do about records that one reader cannot read: starting behind them loses what another reader reads."""


class SparkSourceError(Exception):
    """Anything that ``loadwise.spark_source`` refuses or fails at."""


class OptionError(SparkSourceError, ValueError):
    """An option is missing, wrong, or goes against another one; ``option`` is its name, and the text starts with it."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option}: {problem}")
        self.option = option
        self.problem = problem

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        """Pickle what it was made of: Spark sends readers, and what they refuse, between its processes."""
        return type(self), (self.option, self.problem)


class UnknownOptionError(OptionError):
    """There is no such option, or it is one that this source does not have; the message names the nearest."""


class MissingDependencyError(SparkSourceError, ImportError):
    """A library that this source needs is not installed; the message names the extra that brings it."""


class SchemaError(SparkSourceError, ValueError):
    """The user's schema has a column that this source does not have, or one of another type."""


class PlanError(SparkSourceError, ValueError):
    """The assignor's answer does not give every range to one task; the message names the assignor."""


class KafkaError(SparkSourceError):
    """The cluster cannot answer; the message names what was asked of it."""


class OffsetsUnavailableError(KafkaError):
    """Topics, partitions or offsets cannot be found out."""


class GroupUnavailableError(KafkaError):
    """The group that a query follows has no members, does not settle, or cannot be seen."""


class DataLossError(KafkaError):
    """Records that the query asks for are gone from Kafka, or never were there."""


class ReadError(KafkaError):
    """A task cannot go on reading; the message names topic, partition and offset."""


class BatchError(ReadError):
    """A batch of records is corrupt, or in a form that is not known. Who knows its place puts that before the text."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, str]]:
        """Pickle what it was made of."""
        return type(self), (self.problem, self.remedy)


class OtherReaderError(BatchError):
    """A batch is in a form that only ``reader=messages`` reads."""


class ReadTimeoutError(ReadError):
    """Nothing arrived for as long as ``kafkaConsumer.pollTimeoutMs`` allows."""
