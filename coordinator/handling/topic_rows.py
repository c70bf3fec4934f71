"""Rows by topic, as Kafka's builders of responses join them.

Mirrors ``OffsetCommitResponse.Builder`` and its siblings of TxnOffsetCommit and OffsetDelete.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from loadwise.coordinator.turns import Turns

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class TopicRows(Generic[K, R]):
    """First the topics with something that does not exist, with all their rows, then the others as they were named."""

    def __init__(self) -> None:
        self._missing: dict[K, list[R]] = {}
        self._others: list[tuple[K, list[R]]] = []

    def missing(self, topic: K) -> list[R]:
        """Return the rows of what does not exist in a topic, to add to; even without rows the topic is answered."""
        return self._missing.setdefault(topic, [])

    def add(self, topic: K, rows: list[R]) -> None:
        """Add the rows of partitions that exist; without rows, nothing."""
        if rows:
            self._others.append((topic, rows))

    def joined(self) -> Turns[list[tuple[K, list[R]]]]:
        """Return the topics with their rows."""
        if not self._missing:
            return self._others
        for topic, rows in self._others:
            yield
            self.missing(topic).extend(rows)
        return list(self._missing.items())
