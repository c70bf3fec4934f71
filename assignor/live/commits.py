"""How rarely each member commits: as configured, or learned where the application commits by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from loadwise.assignor.live.tuning import CommitTuning
from loadwise.assignor.model import Bools


class CommitTimes:
    """The longest time between two commits that is normal for each member; learned if ``configured_s`` is None."""

    def __init__(self, configured_s: float | None, tuning: CommitTuning) -> None:
        self.by_hand, self._tuning = configured_s is None, tuning
        self.least_s = tuning.least_s if configured_s is None else configured_s
        self.longest_s = self._unknown_s = tuning.unknown_s if configured_s is None else configured_s
        """The longest such time of all members."""
        self._learned_s: dict[str, float] = {}
        self._gaps_ms: dict[str, deque[int]] = {}
        self._since_ms: dict[str, int] = {}
        """The reading that showed each member's newest commit, or one without records to commit since."""
        self._watched_ms = 0

    def watch(self, members: Sequence[str], now_ms: int) -> None:
        """Watch the members of a new generation: the gap in which the rebalance was does not count."""
        self._since_ms, self._watched_ms = {}, now_ms
        self._gaps_ms = {member: self._gaps_ms.get(member, deque(maxlen=self._tuning.gaps)) for member in members}
        self._learn()

    def saw(self, members: Sequence[str], went_on: Bools, left: Bools, since_ms: int, now_ms: int) -> None:
        """Take in a reading; bool[M]: members with new commits since the last one, and with records left to commit."""
        if not self.by_hand or since_ms < self._watched_ms:  # a commit before the rebalance may be another member's
            return
        for member, goes, has_left in zip(members, went_on.tolist(), left.tolist(), strict=True):
            last_ms = self._since_ms.get(member)
            if goes and last_ms is not None:
                rare = since_ms - last_ms >= 1000 * self.least_s
                self._gaps_ms[member].append(now_ms - last_ms if rare else 0)
            if goes or (last_ms is not None and not has_left):
                self._since_ms[member] = now_ms
        self._learn()

    def slack_s(self, member: str) -> float:
        """Return the longest normal time between two commits of the member: its own, or that of others until then."""
        return self._learned_s.get(member, self.longest_s)

    def _learn(self) -> None:
        known = ((member, gaps) for member, gaps in self._gaps_ms.items() if len(gaps) == self._tuning.gaps)
        self._learned_s = {member: self.least_s + min(gaps) / 1000 for member, gaps in known}
        self.longest_s = max(self._learned_s.values(), default=self._unknown_s)
