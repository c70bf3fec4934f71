"""The problems that persist, so that each is logged once and not at every rebalance."""

from __future__ import annotations


class Troubles:
    """The problems that have begun and are not over, each identified by its text."""

    def __init__(self) -> None:
        self._lasting: set[str] = set()

    def begins(self, trouble: str) -> bool:
        """Record a problem; return whether it is new, or has come back after it was over."""
        begun = trouble not in self._lasting
        self._lasting.add(trouble)
        return begun

    def over(self, trouble: str) -> None:
        """Record that this problem does not exist now."""
        self._lasting.discard(trouble)
