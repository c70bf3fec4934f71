"""What was decided after a reading, and why, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass

from loadwise.assignor.live.judgement import Judgement
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.model import Floats, TopicPartition


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Decision:
    """One decision of the member that watches its group."""

    generation: int
    """The generation that was looked at."""
    now_ms: int
    """When, by the caller's clock."""
    refusal: str | None
    """Why no rebalance is asked for; None where one is."""
    members: tuple[str, ...]
    """Instance ids, or member ids where there are none; the arrays are in this order."""
    capacity_per_s: Floats
    """float64[M], in records/s; relative where ``judgement.known`` is False."""
    judgement: Judgement
    """Demand and utilisation, before and after."""
    lag: Floats
    """float64[M], in records."""
    missing: int
    """How many members the group lacks; 0 where it suffices, or where that is not known."""
    settings: LiveSettings

    @property
    def ask(self) -> bool:
        """Whether a rebalance is to be asked for."""
        return self.refusal is None

    @property
    def moved(self) -> list[TopicPartition]:
        """The partitions that a rebalance would move."""
        return [self.judgement.group.name_of(row) for row in self.judgement.moved.tolist()]

    def __str__(self) -> str:
        """One line for a log."""
        judged = self.judgement
        what = "a rebalance would help" if self.settings.dry_run else "asking for a rebalance"
        loads = ", ".join(
            f"{member} {demand:,.0f}/s {before:.0%}" + (f" -> {after:.0%}" if len(judged.moved) else "")
            for member, demand, before, after in list(
                zip(self.members, judged.demand.tolist(), judged.before.tolist(), judged.after.tolist(), strict=True)
            )[:_MOST_NAMED]
        )
        more = f" and {len(self.members) - _MOST_NAMED} more" if len(self.members) > _MOST_NAMED else ""
        why = what if self.refusal is None else self.refusal
        moved = f"; {len(judged.moved)} partitions would move, {judged.moved_share:.0%} of the demand"
        return (
            f"generation {self.generation}: {why}; busiest member at {judged.worst:.0%}"
            f"{moved if len(judged.moved) else ''}; {loads}{more}"
        )


_MOST_NAMED = 12
"""So many members are named in a line."""
