"""The settings of the watching leader, in plain words; docs/live.md shows what each of them changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Real

from loadwise.assignor.errors import BadGroupError


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """When the leader asks for a rebalance because of the load. Raises `BadGroupError` for what cannot be."""

    dry_run: bool = False
    """Decide and log, but never ask for a rebalance."""
    healthy: float = 0.7
    """Up to this utilisation of its busiest member a group is left alone."""
    least_gain: float = 0.1
    """A rebalance must bring the highest utilisation down by at least this much."""
    patience_s: float = 2.0
    """How many seconds of one member's work the imbalance must have cost before a rebalance may be asked for.

    Half as much imbalance is waited for twice as long. The time that a rebalance takes is added to it.
    """
    least_interval_s: float = 10.0
    """Time between the end of one rebalance, for whatever reason, and a request for another."""
    longest_back_off_s: float = 1800.0
    """After a rebalance that did not help, the next one waits for 20 seconds, then for 40, then for 80, up to this."""
    most_per_hour: int = 6
    """Requests for a rebalance in any hour."""
    drain_s: float = 30.0
    """A backlog is planned to be gone after so many seconds, or as soon as the group can manage if that is later.

    Once half of ``most_per_hour`` are used up, 64 times as long: the others are kept for what arrives.
    """

    cost: Mapping[str, float] = field(default_factory=dict)
    """Topic to what one of its records costs a member, in relation to the others: 1 for a topic that is not named.

    Empty: it is learned from what members measure.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.cost, Mapping):
            raise BadGroupError(f"cost is {self.cost!r}; it must map topics to numbers")
        for topic, cost in self.cost.items():
            if not (_is_number(cost) and 0 < cost < math.inf):
                raise BadGroupError(f"the cost of {topic} is {cost!r}; it must be a finite number above 0")
        if not isinstance(self.dry_run, bool):
            raise BadGroupError(f"dry_run is {self.dry_run!r}; it must be True or False")
        for each in fields(self):
            if each.name in {"cost", "dry_run"}:
                continue
            value = getattr(self, each.name)
            if not (_is_number(value) and 0 <= value < math.inf):
                raise BadGroupError(f"{each.name} is {value!r}; it must be a finite number of 0 or more")
        if self.drain_s == 0:
            raise BadGroupError("drain_s is 0; the time to drain a backlog in must be above 0 seconds")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
