"""The errors of ``loadwise.spark_source``.

::

    SparkSourceError                    base class
    ├── OptionError                     an option is missing, wrong, or conflicts with another one
    │   └── UnknownOptionError          the option does not exist or is not supported
    ├── MissingDependencyError          pyspark, pyarrow or confluent-kafka is not installed (names the extra)
    ├── SchemaError                     the user's schema has columns that this source does not have
    ├── OnlyReadsError                  something is to be written
    ├── PlanError                       the assignor does not give every range to one task
    └── KafkaError                      the cluster cannot answer
        ├── OffsetsUnavailableError     topics, partitions or offsets cannot be looked up
        ├── GroupUnavailableError       the group has no members, does not settle, or cannot be described
        ├── DataLossError               records of the query are missing (``failOnDataLoss``)
        └── ReadError                   a task cannot continue reading
            ├── BatchError              a batch of records is corrupt or of an unknown format
            │   └── OtherReaderError    a batch in a format that only ``reader=messages`` reads
            └── ReadTimeoutError        nothing arrived for ``kafkaConsumer.pollTimeoutMs``

Spark passes on only the text of a Python data source's exceptions, with our text last. So a message is one line that
says what is wrong, where (topic, partition, offset), and which option to change. Messages never contain passwords.
"""

from __future__ import annotations

START_BEHIND = "start a new query after it (startingOffsets)"
"""The remedy for records that no reader can read."""
OTHERS_MAY_READ = (
    "another reader may read it: set reader={reader}, or use Spark's format('kafka'); only if these fail too,"
    f" {START_BEHIND}"
)
"""The remedy for records that one reader cannot read: starting behind them would skip what another reader can read."""


class SparkSourceError(Exception):
    """Base class of all errors of ``loadwise.spark_source``."""


class OptionError(SparkSourceError, ValueError):
    """An option is missing, wrong, or conflicts with another; the message starts with its name, ``option``."""

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"option {option}: {problem}")
        self.option = option
        self.problem = problem

    def __reduce__(self) -> tuple[type[OptionError], tuple[str, str]]:
        """Pickle the arguments: Spark sends readers and their errors between its processes."""
        return type(self), (self.option, self.problem)


class UnknownOptionError(OptionError):
    """The option does not exist or is not supported; the message names the nearest."""


class MissingDependencyError(SparkSourceError, ImportError):
    """A required library is not installed; the message names the extra that installs it."""


class SchemaError(SparkSourceError, ValueError):
    """The user's schema has an unknown column, or one of another type."""


class OnlyReadsError(SparkSourceError, NotImplementedError):
    """A DataFrame or a stream is to be written with this source."""


class PlanError(SparkSourceError, ValueError):
    """The assignor does not give every range to one task; the message names the assignor."""


class KafkaError(SparkSourceError):
    """The cluster cannot answer; the message names the request."""


class OffsetsUnavailableError(KafkaError):
    """Topics, partitions or offsets cannot be looked up."""


class GroupUnavailableError(KafkaError):
    """The group of a query has no members, does not settle, or cannot be described."""


class DataLossError(KafkaError):
    """Records of the query were deleted from Kafka, or never existed."""


class ReadError(KafkaError):
    """A task cannot continue reading; the message names topic, partition and offset."""


class BatchError(ReadError):
    """A batch of records is corrupt or of an unknown format. The caller adds the place to the message."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, str]]:
        """Pickle the arguments."""
        return type(self), (self.problem, self.remedy)


class OtherReaderError(BatchError):
    """A batch has a format that only ``reader=messages`` reads."""


class ReadTimeoutError(ReadError):
    """Nothing arrived within ``kafkaConsumer.pollTimeoutMs``."""
