"""The cost of a record of each partition by a user's own loads: load over arrivals.

Demand follows the arrivals of seconds, while own loads come once in a while. So a load says what a record costs, and
what members process is counted in the same unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from loadwise.assignor.live.index import Table, no_partitions
from loadwise.assignor.live.tuning import OwnCostTuning
from loadwise.assignor.model import Floats


@dataclass(frozen=True, eq=False, slots=True)
class OwnCosts(Table):
    """Costs after the newest loads; float64[P] each, NaN if unknown."""

    load: Floats = field(default_factory=no_partitions)
    """The mean of the newest loads, and..."""
    rate: Floats = field(default_factory=no_partitions)
    """... of the records/s that arrived meanwhile: the two are not of the same moments."""
    cost: Floats = field(default_factory=no_partitions)
    """The cost of a record of each partition."""
    unit: float = 0.0
    """The load of a record that costs 1: the group's mean at first; 0 without loads."""

    def __bool__(self) -> bool:
        return self.unit > 0


def learned(known: OwnCosts, load: Floats, rate: Floats, tuning: OwnCostTuning) -> OwnCosts:
    """Take in loads and records/s of each partition, float64[P]. Costs stay while they differ by no more than noise."""
    load, rate = _mean(known.load, load, tuning.newest), _mean(known.rate, rate, tuning.newest)
    usable = (load > 0) & (rate > 0)
    if not usable.any():
        return replace(known, load=load, rate=rate)  # the same costs
    unit = known.unit or float(load[usable].sum() / rate[usable].sum())
    cost = np.divide(load, rate * unit, out=known.cost.copy(), where=usable)
    cost[usable] = np.clip(cost[usable], 1 / tuning.furthest, tuning.furthest)
    before = np.nan_to_num(known.cost, nan=1.0)
    wrong = np.nansum(np.abs(cost - before) * rate)
    stays = bool(known) and wrong <= tuning.noise * np.nansum(before * rate)
    return OwnCosts(load, rate, known.cost if stays else cost, unit)


def _mean(before: Floats, newest: Floats, weight: float) -> Floats:
    """Return the mean with a weight for the newest, of partitions whose newest value is known."""
    mean = np.where(np.isnan(before), newest, before + weight * (newest - before))
    return np.where(np.isnan(newest), before, mean)
