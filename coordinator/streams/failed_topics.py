"""Reasons why groups' internal topics could not be created.

Mirrors the ``ExpiringErrorCache`` of Kafka's brokers. Members get the reason, and until it expires the topic is not
tried again.
"""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 1000
"""Maximum number of topics; beyond it, the one that expires first is dropped."""


class FailedTopics:
    """The reasons by topic name; each expires."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[int, str]] = {}

    def add(self, name: str, reason: str, until_ms: int) -> None:
        """Add the reason why a topic could not be created, until it expires."""
        self._reasons[name] = (until_ms, reason)
        if len(self._reasons) > _MOST:
            del self._reasons[min(self._reasons, key=lambda each: self._reasons[each][0])]

    def of(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Return the current reasons for these topics, by name."""
        found = ((name, self._reasons.get(name)) for name in names)
        return {name: reason[1] for name, reason in found if reason is not None and reason[0] > now_ms}
