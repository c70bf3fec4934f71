"""Why topics could not be made that groups need for themselves. Mirrors the ``ExpiringErrorCache`` of Kafka's brokers.

Members are told of it, and the topics are not tried again meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 1000
"""So many topics are remembered; the one to be forgotten first goes when there is another."""


class FailedTopics:
    """The reasons by topic name, each for some time."""

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[int, str]] = {}

    def add(self, name: str, reason: str, until_ms: int) -> None:
        """Remember why a topic could not be made, until then."""
        self._reasons[name] = (until_ms, reason)
        if len(self._reasons) > _MOST:
            del self._reasons[min(self._reasons, key=lambda each: self._reasons[each][0])]

    def of(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """The reasons for those of some topics that could not be made of late."""
        found = ((name, self._reasons.get(name)) for name in names)
        return {name: reason[1] for name, reason in found if reason is not None and reason[0] > now_ms}
