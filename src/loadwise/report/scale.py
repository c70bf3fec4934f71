"""Scales of charts: where an axis has its ticks."""

from __future__ import annotations

import math

_TICKS = 5


def ticks(largest: float) -> list[float]:
    """Round numbers from 0 to the first at or above ``largest``, about five steps of 1, 2 or 5 times a power of ten."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    count = math.ceil(largest / step - 1e-9)
    return [step * number for number in range(count + 1)]
