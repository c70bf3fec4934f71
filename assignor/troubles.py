"""Which troubles last, so that each is logged once and not at every rebalance."""

from __future__ import annotations


class Troubles:
    """The troubles that have begun and are not over. A trouble is named by its text."""

    def __init__(self) -> None:
        self._lasting: set[str] = set()

    def begins(self, trouble: str) -> bool:
        """Note a trouble; return whether it is new or was over in between."""
        begun = trouble not in self._lasting
        self._lasting.add(trouble)
        return begun

    def over(self, trouble: str) -> None:
        """Note that there is no such trouble now."""
        self._lasting.discard(trouble)
