"""What one member knows of the rebalances that it led, for its user: ``consumer.rebalances``."""

from __future__ import annotations

import math
from collections import Counter

from loadwise.assignor.group_history import GroupHistory
from loadwise.assignor.leader import Leader
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.participant import Participant


class Rebalances:
    """The rebalances that one member led, and what it decided. Any thread may read it; it sends no requests."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant

    @property
    def _leader(self) -> Leader | None:
        return self._participant.leader

    def history(self) -> GroupHistory:
        """Return the latest readings and decisions of this leader: 200 readings, or fewer if they exceed 8 MB.

        Its ``save(path)`` writes a file for ``loadwise replay``.
        """
        return GroupHistory(start=None) if self._leader is None else GroupHistory.of(self._leader.history())

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions in this history, the latest one last."""
        return self.history().decisions

    @property
    def watches(self) -> bool:
        """Whether this member watches its group's load whenever it leads."""
        return self._leader is not None

    @property
    def leads(self) -> bool:
        """Whether this member is the leader and watches the load now."""
        return self._leader is not None and self._leader.leads

    @property
    def generation(self) -> int:
        """The generation of the latest assignment; negative before the first one."""
        return self._participant.generation

    @property
    def led(self) -> int:
        """The number of rebalances that this member led."""
        return self._participant.led

    @property
    def fallbacks(self) -> int:
        """How many of these rebalances had no usable load."""
        return self._participant.targets.fallbacks

    @property
    def failures(self) -> int:
        """How many exceptions the load source and the assignor have raised."""
        return self._participant.targets.failures

    @property
    def skipped_decisions(self) -> int:
        """How many decisions ``on_decision`` did not receive, because newer ones were made while it ran."""
        listener = self._participant.listener
        return 0 if listener is None else listener.skipped

    @property
    def assigning_s(self) -> float:
        """The total time that this member took to decide these rebalances."""
        return self._participant.assigning_s

    @property
    def by_cause(self) -> Counter[str]:
        """These rebalances by cause, if the load is watched: ``load``, ``members``, ``second_round``, ``other``."""
        return Counter() if self._leader is None else self._leader.rebalances

    @property
    def moved_share(self) -> float:
        """The demand that these rebalances moved, as a sum of shares of the total demand."""
        return 0.0 if self._leader is None else self._leader.moved_share

    @property
    def reading_age_s(self) -> float:
        """The seconds since the latest reading of the group's offsets; NaN before the first one."""
        return math.nan if self._leader is None else self._leader.reading_age_s
