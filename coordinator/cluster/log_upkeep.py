"""Deletes expired records and the state of idle producers from the logs.

Mirrors the two periodic tasks of Kafka's ``LogManager`` and ``ProducerStateManager``.
"""

from __future__ import annotations

from collections.abc import Callable

from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.topics import Topics

PRODUCERS_CHECK_INTERVAL_MS = 600_000
"""How often idle producers are expired (producer.id.expiration.check.interval.ms)."""


class LogUpkeep:
    """Checks all logs at intervals, as long as something can expire."""

    def __init__(
        self,
        topics: Topics,
        producer_id_expiration_ms: int,
        *,
        retention_check_interval_ms: int,
        delete_records: Callable[[PartitionLog, int], None],
        now_ms: int,
    ) -> None:
        self._topics = topics
        self._producer_id_expiration_ms = producer_id_expiration_ms
        self._retention_check_interval_ms = retention_check_interval_ms
        self._delete_records = delete_records
        self._retention_due_ms: int | None = None
        self._producers_due_ms: int | None = None
        self._arm_retention(now_ms)
        self._arm_producers(now_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `run` must be called next; None if nothing can expire."""
        deadlines = (self._retention_due_ms, self._producers_due_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def grown(self, log: PartitionLog, now_ms: int) -> None:
        """Note that a batch was appended to a log."""
        if self._retention_due_ms is None:
            self._retention_due_ms = now_ms + self._retention_check_interval_ms
        if self._producers_due_ms is None and log.producers.known:
            self._producers_due_ms = now_ms + PRODUCERS_CHECK_INTERVAL_MS

    def run(self, now_ms: int) -> None:
        """Run the checks that are due."""
        if self._retention_due_ms is not None and self._retention_due_ms <= now_ms:
            for topic in self._topics:
                for partition in topic.partitions:
                    self._delete_records(partition.log, partition.log.retained_from(now_ms))
            self._arm_retention(now_ms)
        if self._producers_due_ms is not None and self._producers_due_ms <= now_ms:
            for topic in self._topics:
                for partition in topic.partitions:
                    if partition.log.expire_producers(now_ms - self._producer_id_expiration_ms):
                        self._topics.keep(partition)
            self._arm_producers(now_ms)

    def _arm_retention(self, now_ms: int) -> None:
        has_records = self._topics.kept_bytes > 0
        self._retention_due_ms = now_ms + self._retention_check_interval_ms if has_records else None

    def _arm_producers(self, now_ms: int) -> None:
        logs = (partition.log for topic in self._topics for partition in topic.partitions)
        has_producers = any(log.producers.known for log in logs)
        self._producers_due_ms = now_ms + PRODUCERS_CHECK_INTERVAL_MS if has_producers else None
