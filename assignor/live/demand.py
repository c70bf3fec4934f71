"""Demand: what a partition asks of its member, in records/s, so that nothing piles up and what has is worked off.

To work a backlog off within H seconds, a member needs to process ``rate + backlog / H`` of each of its partitions. So
this is the one weight that adds up, and the demand of a member over its capacity is its **utilisation**.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Floats

_OF_RECENT = 0.1
"""A partition that is idle now is placed by this part of what it had recently."""


def backlog(lag: Floats, rate: Floats, slack_s: float | Floats) -> Floats:
    """float64[P]: the lag beyond what arrives in ``slack_s``, the time between two commits; 0 where it is unknown.

    A member that keeps up looks as if it lagged by as much, only because it commits from time to time.
    """
    return np.nan_to_num(np.maximum(lag - np.nan_to_num(rate, nan=0.0) * slack_s, 0.0), nan=0.0)


def horizon_s(backlog: Floats, rate: Floats, capacity_per_s: float | None, shortest_s: float) -> float:
    """The seconds to work the backlog off in: ``shortest_s``, or as many more as the whole group needs for it.

    ``capacity_per_s`` is the whole group's, None where it is unknown. Infinite where it does not even suffice for what
    arrives: then the rate alone is to be shared.
    """
    waiting = float(backlog.sum())
    if capacity_per_s is None or not waiting:
        return shortest_s
    spare = capacity_per_s - float(np.nansum(rate))
    return max(shortest_s, waiting / spare) if spare > 0 else float("inf")


def demand(rate: Floats, recent: Floats, backlog: Floats, horizon: float) -> Floats:
    """float64[P]: ``rate + backlog / horizon`` in records/s, NaN where the rate is not known and nothing waits.

    ``recent`` is the rate of the last quarter of an hour, of which idle partitions keep a tenth. Where no rate is known
    of any partition, the backlog alone is the demand, and a partition without one is idle: a guess at its rate by the
    backlog of others would outweigh what is known.
    """
    coming = np.fmax(rate, _OF_RECENT * recent)
    unknown = np.isnan(coming)
    asked = np.nan_to_num(coming, nan=0.0) + backlog / horizon
    return asked if unknown.all() else np.where(unknown & (backlog == 0), np.nan, asked)
