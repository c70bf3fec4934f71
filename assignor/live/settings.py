"""The settings of a leader that an operator may change; all other constants are in `tuning`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field, fields
from numbers import Real

from loadwise.assignor.errors import BadGroupError


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """When the leader requests a rebalance because of the load. Raises `BadGroupError` for invalid values."""

    dry_run: bool = False
    """Decide and log, but never request a rebalance."""
    healthy: float = 0.7
    """No rebalance is requested up to this utilisation of the busiest member."""
    least_gain: float = 0.1
    """A rebalance must reduce the highest utilisation by at least this."""
    standstill: float = 0.025
    """The share of time for which members may stand still for rebalances for the load; 0: none is requested."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Topic to the relative cost of one of its records: 1 for a topic without an entry.

    If empty, costs are learned from members' measurements.
    """
    most_per_hour: InitVar[None] = None

    def __post_init__(self, most_per_hour: None) -> None:
        if most_per_hour is not None:
            raise BadGroupError(
                "most_per_hour is no longer a setting; use standstill, the share of time for which members may stand"
                " still for rebalances, such as 0.025"
            )
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
            if each.name in {"healthy", "least_gain", "standstill"} and _is_number(value) and value > 1:
                raise BadGroupError(f"{each.name} is {value!r}; it must be a share from 0 to 1, such as {each.default}")
            if not (_is_number(value) and 0 <= value < math.inf):
                raise BadGroupError(f"{each.name} is {value!r}; it must be a finite number of 0 or more")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
