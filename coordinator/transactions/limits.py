"""Limits of transactions, under Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadwise.coordinator.configs.setting import Setting, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """What holds for all transactions; the names in brackets are Kafka's, and so are the values."""

    max_timeout_ms: int = 15 * 60 * 1000
    """Longest timeout that a producer may ask for (transaction.max.timeout.ms)."""
    max_ids: int = 10_000
    """Most transactional ids; Kafka has no such limit."""
    id_expiration_ms: int = 7 * 24 * 3600 * 1000
    """How long a transactional id is remembered that is not used (transactional.id.expiration.ms)."""


SETTINGS: Mapping[str, Setting] = {
    "transaction.max.timeout.ms": whole(TransactionLimits, "max_timeout_ms", 1),
    "transactional.id.expiration.ms": whole(TransactionLimits, "id_expiration_ms", 1),
}
"""The brokers' settings by Kafka's names."""
