"""Demand: what a partition asks of its member, in records/s, so that nothing piles up and what has is worked off.

To work a backlog off within H seconds, a member needs to process ``rate + backlog / H`` of each of its partitions. So
this is the one weight that adds up, and the demand of a member over its capacity is its **utilisation**.
"""

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
    """float64[P]: ``rate + backlog / H`` in records/s, NaN where the rate is not known and nothing waits.

    H is `DemandTuning.drain_s`, or as much more as the whole group needs to work its backlog off. ``asking``
    are the rows of the group, ``capacity_per_s`` what it can process, None where that is unknown.

    Where no rate is known of any partition, the backlog alone is the demand, and a partition without one is idle: a
    guess at its rate by the backlog of others would outweigh what is known.
    """
    backlog = np.nan_to_num(waiting, nan=0.0)
    horizon_s, in_all = tuning.drain_s, float(backlog[asking].sum())
    if capacity_per_s is not None and in_all:
        spare = capacity_per_s - float(np.nansum(rate[asking]))
        # Where it does not even suffice for what arrives, the rate alone is to be shared.
        horizon_s = max(horizon_s, in_all / spare) if spare > 0 else math.inf
    unknown = np.isnan(rate)
    asked = np.nan_to_num(rate, nan=0.0) + backlog / horizon_s
    return asked if unknown.all() else np.where(unknown & (backlog == 0), math.nan, asked)
