"""The rebalances that a member led: their causes, and the demand that they moved."""

from __future__ import annotations

from collections import Counter

from loadwise.counted import counted


class Causes:
    """The causes of the rebalances of this member's group."""

    def __init__(self) -> None:
        self.by_cause: Counter[str] = Counter()
        """Counts by ``load``, ``members`` (joined or left), ``second_round`` (of a cooperative one) and ``other``."""
        self.moved_share = 0.0  # the demand that they moved: the sum of the shares of the total demand
        self.asked = False  # whether the next rebalance was requested because of the load
        self.members: frozenset[str] = frozenset()  # the members of the newest generation, if this member leads it

    def follow(self) -> None:
        """Note that another member leads now."""
        self.members, self.asked = frozenset(), False

    def lead(self, members: frozenset[str], *, second_round: bool) -> tuple[str, str]:
        """Return the cause of the rebalance that has just ended, for the counter and for the log."""
        cause = self._cause(members, second_round=second_round)
        self.members, self.asked = members, False
        return cause

    def count(self, cause: str, moved_share: float) -> None:
        """Count a rebalance."""
        self.by_cause[cause] += 1
        self.moved_share += moved_share

    def _cause(self, members: frozenset[str], *, second_round: bool) -> tuple[str, str]:
        if self.asked:
            return "load", "rebalanced for the load"
        if not self.members:
            return "other", "this member leads now"
        if second_round:
            return "second_round", "second round of the same rebalance"
        came, went = len(members - self.members), len(self.members - members)
        if came or went:
            return "members", f"rebalanced: {counted(came, 'member')} came, {went} went"
        return "other", "rebalanced: topics or subscriptions changed, or a member asked for it"
