"""What has to be kept of topics, partitions and their producers over a restart; records stand beside it, as batches.

Mirrors Kafka's ``TopicRecord`` and ``PartitionRecord``, the leader epoch checkpoint and the producer snapshot of a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from loadwise.coordinator.keeper import LogName, Place


class EpochStart(NamedTuple):
    """A leader epoch, and where it begins."""

    epoch: int
    offset: int


class ProducedBatch(NamedTuple):
    """One of the last batches of a producer."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    max_timestamp_ms: int = -1
    """Its largest timestamp, which a repeated batch is answered with."""


class AbortedTransaction(NamedTuple):
    """A transaction whose records a reader of committed records leaves out."""

    producer_id: int
    first_offset: int
    """Offset of its first record in this partition."""
    last_offset: int
    """Offset of its marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """What a partition remembers of one producer."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_timestamp_ms: int
    batches: Sequence[ProducedBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """What a log knows beside its batches. Batches from ``end_offset`` on are not counted yet."""

    start_offset: int = 0
    end_offset: int = 0
    epochs: Sequence[EpochStart] = (EpochStart(0, 0),)
    producers: Sequence[ProducerRecord] = ()
    open: Sequence[tuple[int, int]] = ()
    """Producer id and first offset of each open transaction, the oldest first."""
    aborted: Sequence[AbortedTransaction] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    """A partition, whenever its brokers change or records are deleted from its beginning."""

    topic_id: UUID
    number: int
    replicas: Sequence[int]
    leader: int
    log: LogRecord

    @property
    def log_name(self) -> LogName:
        """Which log it has."""
        return LogName(self.topic_id, self.number)

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("partition", str(self.topic_id), self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """A topic, whenever it or its configs change."""

    name: str
    id: UUID
    configs: Mapping[str, str]

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("topic", str(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorsRecord:
    """Which broker leads each partition of ``__consumer_offsets`` or ``__transaction_state``, if that was changed."""

    topic: str
    node_ids: Sequence[int]

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("coordinators", self.topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    """Producer ids below this one may have been handed out (Kafka's ``ProducerIdsRecord``)."""

    next_id: int

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("producer ids",)
