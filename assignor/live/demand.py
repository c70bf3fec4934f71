"""Demand: the records/s of a partition that its member must process to keep up and to work off the backlog."""

from __future__ import annotations

import math

import numpy as np

from loadwise.assignor.live.tuning import DemandTuning
from loadwise.assignor.model import Floats, Ints


def demand(
    rate: Floats,
    waiting: Floats,
    asking: Ints | slice,
    *,
    capacity_per_s: float | None,
    tuning: DemandTuning,
) -> Floats:
    """Return float64[P]: ``rate + backlog / H`` in records/s, NaN if the rate is unknown and there is no backlog.

    H is `DemandTuning.drain_s`, or the longer time in which the group, ``asking`` with this capacity, can do it.
    """
    backlog = np.nan_to_num(waiting, nan=0.0)
    horizon_s, in_all = tuning.drain_s, float(backlog[asking].sum())
    if capacity_per_s is not None and in_all:
        spare = capacity_per_s - float(np.nansum(rate[asking]))
        # If the capacity is below the arrivals, share the rate alone.
        horizon_s = max(horizon_s, in_all / spare) if spare > 0 else math.inf
    unknown = np.isnan(rate)  # if all are, the backlog alone counts: a guessed rate would outweigh it
    asked = np.nan_to_num(rate, nan=0.0) + backlog / horizon_s
    return asked if unknown.all() else np.where(unknown & (backlog == 0), math.nan, asked)
