"""The position in an offset range, and the errors of reading it, for both readers.

Every error names topic, partition, offset and the option to change.
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

BATCH_BYTES = 16 << 20
"""About the most bytes of an Arrow batch; a single record may be larger."""

MAY_READ = "give this user (kafka.sasl.*, kafka.ssl.*) the right to READ the topic"
CHECK_OPTIONS = "check the kafka.* options and the rights of this user"


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
        """The rest of ``kafkaConsumer.pollTimeoutMs``."""
        return max(0.0, self._deadline - monotonic())

    def renew(self) -> None:
        """Start ``kafkaConsumer.pollTimeoutMs`` again."""
        self._deadline = monotonic() + self.options.poll_timeout_ms / 1000

    def lose(self, problem: str, resume: int) -> None:
        """Fail because of lost records, or continue behind them, depending on ``failOnDataLoss``."""
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{self} is lost: {problem}; set failOnDataLoss=false to read the other records")
        where = str(self)  # a handler may format it later, when the position has moved
        logger.warning("%s is lost: %s; continuing at offset %d (failOnDataLoss=false)", where, problem, resume)
        self.position = resume

    def left(self, first: int) -> int:
        """Return where to continue if offsets were deleted and the partition now begins at ``first``.

        If the position is behind the partition's end, nothing of the range is left.
        """
        return first if self.position < first < self.wanted.end else self.wanted.end

    def refused(self, problem: str, remedy: str) -> ReadError:
        """Return the error for a problem that a retry does not fix."""
        return ReadError(f"cannot read {self}: {problem}; {remedy}")

    def too_late(self, why: str) -> ReadTimeoutError:
        """Return the error for records that do not arrive; ``why`` is the end of a sentence or empty."""
        return ReadTimeoutError(
            f"no record of {self} arrived for {self.options.poll_timeout_ms} ms{why}; check"
            " kafka.bootstrap.servers and the brokers, or raise kafkaConsumer.pollTimeoutMs"
        )

    def __str__(self) -> str:
        return f"{self.wanted.topic}-{self.wanted.partition} at offset {self.position} (of {self.wanted})"
