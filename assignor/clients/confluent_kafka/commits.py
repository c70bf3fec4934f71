"""Commits of a confluent-kafka consumer: the stored, not yet committed offsets with the member's generation."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from loadwise.assignor.clients.confluent_kafka.terms import as_confluent, confluent_error, listed, not_owned
from loadwise.assignor.clients.membership import (
    CommitOutcome,
    Membership,
    OffsetAndMetadata,
    Offsets,
    Partition,
    milliseconds,
)

log = logging.getLogger(__name__)

_TIMEOUT_S = 60.0
"""Timeout of a synchronous commit; the default of librdkafka's ``socket.timeout.ms``."""

_DEFAULT_S = 5.0
"""The default of ``auto.commit.interval.ms``."""


class StoredOffsets:
    """The stored offsets, the committed or pending ones, and the calls of ``on_commit``."""

    def __init__(
        self,
        config: Mapping[str, Any],
        on_commit: Callable[[KafkaError | None, list[TopicPartition]], None] | None,
    ) -> None:
        self.stores_what_is_read = _is_true(config.get("enable.auto.offset.store", True))
        """Whether offsets are stored without a call of ``store_offsets``."""
        self.every_s = _auto_commit_s(config)
        """The auto-commit interval in seconds; infinite without auto-commit."""
        self._on_commit = on_commit
        self._stored: dict[Partition, OffsetAndMetadata] = {}
        self._sent: dict[Partition, int] = {}

    @property
    def member_settings(self) -> dict[str, Any]:
        """The settings that tell a member how often its application commits."""
        if math.isinf(self.every_s):
            return {"enable_auto_commit": False}
        # The member's thread commits, so a shorter interval than the default is not kept exactly.
        return {"auto_commit_interval_ms": round(1000 * max(self.every_s, _DEFAULT_S))}

    def store(self, offsets: Offsets) -> None:
        """Store offsets for the application."""
        self._stored |= offsets

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Drop the offsets of partitions that others own now."""
        for key in partitions:
            self._stored.pop(key, None)
            self._sent.pop(key, None)

    def wanted(self, read: Offsets | None) -> dict[Partition, OffsetAndMetadata]:
        """Return the offsets to commit: those that were ``read`` if they are stored, else those given to `store`."""
        stored = self._stored if read is None else read
        return {key: offset for key, offset in stored.items() if self._sent.get(key) != offset.offset}

    def tell_of_nothing(self) -> None:
        """Call ``on_commit`` for a commit without any offsets."""
        if self._on_commit is not None:
            self._on_commit(KafkaError(KafkaError._NO_OFFSET), [])

    def later(self, member: Membership, offsets: Offsets) -> None:
        """Commit asynchronously; ``on_commit`` gets the result."""
        self._mark_sent(offsets)
        with as_confluent():
            member.commit_async(offsets, self._came_out)

    def now(self, member: Membership, offsets: Offsets) -> list[TopicPartition]:
        """Commit and wait. Raises ``KafkaException`` if offsets are refused or not owned."""
        with as_confluent():
            outcome = member.commit(offsets, _TIMEOUT_S)
        self._mark_sent(outcome.committed)
        if outcome.dropped:
            raise KafkaException(not_owned(outcome.dropped))
        return listed(outcome.committed)

    def _mark_sent(self, offsets: Offsets) -> None:
        self._sent |= {key: offset.offset for key, offset in offsets.items()}

    def _came_out(self, outcome: CommitOutcome) -> None:
        for key, offset in (*outcome.refused.items(), *outcome.dropped.items()):
            if self._sent.get(key) == offset.offset:
                del self._sent[key]
        if outcome.dropped:
            log.warning("Offsets of partitions that are no longer owned were not committed: %s", outcome.dropped)
        if outcome.error is not None:
            log.warning("A commit was refused: %s", outcome.error)
        if self._on_commit is None:
            return
        if outcome.dropped:
            self._on_commit(not_owned(outcome.dropped), listed(outcome.dropped))
        reached = dict(outcome.committed) | dict(outcome.refused)
        if reached:
            self._on_commit(None if outcome.error is None else confluent_error(outcome.error), listed(reached))


def _is_true(value: Any) -> bool:
    return str(value).lower() in ("true", "t", "1")


def _auto_commit_s(config: Mapping[str, Any]) -> float:
    every_ms = milliseconds("auto.commit.interval.ms", config.get("auto.commit.interval.ms", 1000 * _DEFAULT_S))
    return every_ms / 1000 if _is_true(config.get("enable.auto.commit", True)) and every_ms else float("inf")
