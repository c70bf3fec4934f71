"""What reading an offset range is, whichever client reads it: where it has got to, and what becomes of trouble.

Every error names topic, partition and offset, and the option to change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from time import monotonic

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import DataLossError, ReadError, ReadTimeoutError
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.task import OffsetRange

logger = logging.getLogger(__name__)

BATCH_RECORDS = 10_000
"""Most records in an Arrow batch, as Spark's own ``spark.sql.execution.arrow.maxRecordsPerBatch``."""
BATCH_BYTES = 16 << 20
"""About how many bytes an Arrow batch may hold; a single record may be larger."""

MAY_READ = "give this user (kafka.sasl.*, kafka.ssl.*) the right to READ the topic"
CHECK_OPTIONS = "check the kafka.* options and the rights of this user"


def most_records(options: SourceOptions) -> int:
    """How many records an Arrow batch may hold (``kafka.max.poll.records``)."""
    return min(options.client.max_poll_records or BATCH_RECORDS, BATCH_RECORDS)


@dataclass(slots=True)
class Reading:
    """A range that is being read."""

    wanted: OffsetRange
    options: SourceOptions
    position: int = -1
    """The next offset to be read."""
    _deadline: float = 0.0

    @property
    def place(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.wanted.topic, self.wanted.partition)

    @property
    def left_s(self) -> float:
        """How long Kafka may still take (``kafkaConsumer.pollTimeoutMs``); 0 if it has taken too long."""
        return max(0.0, self._deadline - monotonic())

    def renew(self) -> None:
        """Begin to count the time that Kafka takes."""
        self._deadline = monotonic() + self.options.poll_timeout_ms / 1000

    def lose(self, problem: str, resume: int) -> None:
        """Fail for what is gone, or go on behind it, as ``failOnDataLoss`` demands."""
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{self} is gone: {problem}; set failOnDataLoss=false to read what there is")
        where = str(self)  # a handler may look later, when it has moved
        logger.warning("%s is gone: %s; going on at offset %d, since failOnDataLoss=false", where, problem, resume)
        self.position = resume

    def left(self, first: int) -> int:
        """Where to go on when offsets are gone, and the partition now begins at ``first``.

        A position behind the partition's end is out of range too, and then nothing of the range is left.
        """
        return first if self.position < first < self.wanted.end else self.wanted.end

    def refused(self, problem: str, remedy: str) -> ReadError:
        """The error for what trying again does not mend."""
        return ReadError(f"cannot read {self}: {problem}; {remedy}")

    def too_late(self, why: str) -> ReadTimeoutError:
        """The error for records that do not come; ``why`` is the end of a sentence or empty."""
        return ReadTimeoutError(
            f"no record of {self} arrived for {self.options.poll_timeout_ms} ms{why}; check"
            " kafka.bootstrap.servers and the brokers, or raise kafkaConsumer.pollTimeoutMs"
        )

    def __str__(self) -> str:
        return f"{self.wanted.topic}-{self.wanted.partition} at offset {self.position} (of {self.wanted})"
