"""Lag and rate as one load: what a member must do a second so that the group drains its backlog together.

To drain all lag within a horizon H, every member needs the sum of ``rate + lag / H`` over its partitions to stay within
its capacity. So ``rate + lag / H`` is the one weight that adds up, and the shortest horizon that the group as a whole
can keep is ``H = sum(lag) / (sum(capacity) - sum(rate))``. Where capacity does not even suffice for the rate, no
horizon does, and the rate alone is to be shared fairly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def drain_weight(
    lag: Mapping[str, Sequence[float | None]],
    rate: Mapping[str, Sequence[float | None]],
    capacity: float,
) -> dict[str, list[float | None]]:
    """Load of each partition in records/s: ``rate + lag / H``.

    ``lag`` in records, ``rate`` in records/s, ``capacity`` the whole group's in records/s; what is None or left out of
    one of them counts as 0 there, and a partition that neither knows has no known load.
    """
    total_lag = math.fsum(value for row in lag.values() for value in row if value is not None)
    spare = capacity - math.fsum(value for row in rate.values() for value in row if value is not None)
    drains = spare > 0 and total_lag > 0
    loads: dict[str, list[float | None]] = {}
    for topic in lag.keys() | rate.keys():
        lags, rates = lag.get(topic, ()), rate.get(topic, ())
        row: list[float | None] = []
        for index in range(max(len(lags), len(rates))):
            waiting = lags[index] if index < len(lags) else None
            coming = rates[index] if index < len(rates) else None
            known = waiting is not None or coming is not None
            drained = (waiting or 0.0) / total_lag * spare if drains else 0.0  # lag / H
            row.append((coming or 0.0) + drained if known else None)
        loads[topic] = row
    return loads
