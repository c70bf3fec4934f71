"""The decision after a reading and its reason, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.assignor.live.judgement import Judgement
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.model import Floats, TopicPartition


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Decision:
    """One decision of the member that watches its group."""

    generation: int
    """The generation that was judged."""
    now_ms: int
    """The time of the decision, by the caller's clock."""
    ask: bool = False
    """Whether to request a rebalance."""
    reason: str
    """The reason for ``ask``."""
    exhausted: bool = False
    """Whether the budget of standstill alone prevents a request for a rebalance, for the first time."""
    waiting: bool = False
    """Whether a rebalance is not requested because it would wait for a member that stands still."""
    soon: bool = False
    """Whether the next reading should come soon, because it may confirm this one."""
    members: tuple[str, ...]
    """Group instance ids, or else member ids; the arrays are in this order."""
    capacity_per_s: Floats
    """float64[M], in records/s; relative if ``judgement.known`` is False."""
    judgement: Judgement
    """Demand and utilisation, before and after a rebalance."""
    lag: Floats
    """float64[M], in records."""
    missing: int
    """The number of members that the group lacks; 0 if it needs no more, or if that is unknown."""
    wanted: int | None = None
    """The number of members that a scaler should give the group; None if unknown."""
    settings: LiveSettings
    lag_s: float = 0.0
    """The estimated lag of the worst member, in seconds of the group's arrivals: a mean of the last ten minutes."""
    saved_s: float | None = None
    """How much lower this is than ``sticky``'s would have been; None if unknown."""
    loses: bool = False
    """Whether ``sticky`` would have been clearly better, so that equal numbers of partitions come first."""
    too_slow: tuple[str, ...] = ()
    """The members without a partition because of their speed, named as in ``members``."""
    overfull: tuple[TopicPartition, float] | None = None
    """A partition with more arrivals than any member can process, and the ratio of the two; None without one."""

    @property
    def moved(self) -> list[TopicPartition]:
        """Return the partitions that a rebalance would move."""
        return [self.judgement.group.name_of(row) for row in self.judgement.moved.tolist()]

    @property
    def too_small(self) -> str:
        """Return the log line that the group is too small, and by how much."""
        return (
            f"The group is too small: its load is {self.judgement.needed:.0%} of the members' capacity, and"
            f" {self.missing} more like them are needed to get below {self.settings.healthy:.0%}"
        )

    @property
    def worse_than_sticky(self) -> str:
        """Return the log line that ``sticky`` would have been better."""
        return (
            f"The highest lag of a member was {-(self.saved_s or 0.0):.1f} s above that of sticky in the last minutes;"
            " members get equal numbers of partitions as long as it is"
        )

    @property
    def too_heavy(self) -> str:
        """Return the log line that a partition is too much for any member; empty without one."""
        if self.overfull is None:
            return ""
        (topic, number), times = self.overfull
        return (
            f"{topic}-{number} alone gets {times:.2f} times the records that the fastest member can process, so it"
            " falls behind on every member: the topic needs more partitions, or keys that spread its records"
        )

    def __str__(self) -> str:
        """Return the decision as one log line."""
        judged = self.judgement
        each = zip(self.members, judged.demand.tolist(), judged.before.tolist(), judged.after.tolist(), strict=True)
        used = "{:.0%}" if judged.known else "{:,.0f}/s"
        loads = [
            f"{member} {demand:,.0f}/s"
            + (f" {used.format(before)}" if judged.known else "")
            + (f" -> {used.format(after)}" if after != before else "")
            for member, demand, before, after in each
        ]
        more = [f"and {len(loads) - _MOST_NAMED} more"] if len(loads) > _MOST_NAMED else []
        moved = (
            [f"{_partitions(len(judged.moved))}, {judged.moved_share:.0%} of the demand"] if len(judged.moved) else []
        )
        saved = self.saved_s or 0.0
        compared = (
            [f"{abs(saved):.1f} s {'less' if saved > 0 else 'more'} lag than sticky"] if abs(saved) >= _TENTH else []
        )
        head = f"Generation {self.generation}: {self.reason}"
        return "; ".join([head, *moved, ", ".join(loads[:_MOST_NAMED] + more), *compared])


def _partitions(moved: int) -> str:
    return "1 partition moves" if moved == 1 else f"{moved:,} partitions move"


_MOST_NAMED = 12  # members that are named in a line
_TENTH = 0.1  # seconds; less is not shown
