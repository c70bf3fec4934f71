"""Which members make progress, and which stand still: a rebalance of a classic group waits until each has polled.

No member of an eager group reads meanwhile, so a member whose program hangs keeps its backlog until it polls again. A
member that polls but has paused its partitions looks the same, until it joins at once in a rebalance of another cause.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadwise.assignor.live.commits import CommitTimes
from loadwise.assignor.live.restraint import Refusal
from loadwise.assignor.live.tuning import ActivityTuning
from loadwise.assignor.model import Bools, Floats

_STILL = "a rebalance would wait for a member that processes nothing of its backlog"


class Activity:
    """When each member last made progress; ``max_poll_s`` as of `GroupWatch`."""

    def __init__(self, commits: CommitTimes, max_poll_s: float, tuning: ActivityTuning) -> None:
        self._commits, self._tuning = commits, tuning
        self._prompt_ms = round(1000 * tuning.still_s)
        self._at_most_ms = max_poll_s * 1000  # a member that is silent for longer and still in the group polls
        self._last_ms: dict[str, int] = {}
        self._read_ms = self._watched_ms = 0
        self._joins: set[str] = set()
        """Members that stood still, nevertheless joined at once, and have made no progress since."""

    def watch(self, members: Sequence[str], now_ms: int, took_ms: int) -> None:
        """Watch the members of a new generation; ``took_ms`` is the duration of the rebalance."""
        began_ms = now_ms - took_ms
        if took_ms <= self._prompt_ms:
            silent, lately_ms = self.silent_ms(began_ms), began_ms - self._read_ms
            self._joins.update(member for member in silent if lately_ms <= self._still_ms(member))
        self._joins.intersection_update(members)
        self._last_ms, self._watched_ms = dict.fromkeys(members, now_ms), now_ms

    def saw(self, members: Sequence[str], went_on: Bools, lagging: Bools, since_ms: int, now_ms: int) -> None:
        """Take in a reading; bool[M]: members with new commits since the last one, and members with a backlog."""
        self._read_ms = now_ms
        for member, goes, lags in zip(members, went_on.tolist(), lagging.tolist(), strict=True):
            if goes or not lags:
                self._last_ms[member] = now_ms
            if goes and since_ms >= self._watched_ms:  # an earlier commit may be another member's work
                self._joins.discard(member)

    def heard(self, member: str, now_ms: int) -> None:
        """Note that the member has sent a report."""
        self._last_ms[member] = now_ms

    def refusal(self, now_ms: int) -> Refusal | None:
        """Return why no rebalance should be requested: it would, or may, wait for members that stand still; or None."""
        silent = {name: now_ms - at for name, at in self._last_ms.items() if name not in self._joins}
        due_ms = {name: 1000 * self._commits.slack_s(name) for name in silent}
        waits = {name: ms for name, ms in silent.items() if due_ms[name] <= ms <= self._at_most_ms}
        still = [f"{name} for {ms / 1000:.0f} s" for name, ms in waits.items() if ms >= self._still_ms(name)]
        if still:
            return Refusal(f"{_STILL}: {', '.join(still)}", waiting=True)
        if waits:  # their next commits decide it
            return Refusal(f"the next commit will show whether they go on: {', '.join(waits)}", soon=True)
        return None

    def silent_ms(self, now_ms: int) -> dict[str, int]:
        """Return the members that process nothing of their backlog, and for how many ms, without an upper limit."""
        return {name: now_ms - at for name, at in self._last_ms.items() if now_ms - at >= self._still_ms(name)}

    def uncommitted_s(self, members: Sequence[str], now_ms: int) -> Floats:
        """Return float64[M]: for how long each member has worked since its last commit: a late one stands still."""
        since_s = ((now_ms - self._last_ms.get(member, now_ms)) / 1000 for member in members)
        return np.array(
            [min(each, self._commits.slack_s(member)) for each, member in zip(since_s, members, strict=True)]
        )

    def _still_ms(self, member: str) -> int:
        return self._tuning.still_ms(self._commits.slack_s(member))
