"""Amounts of a plan in words. Pure."""

from __future__ import annotations

from collections.abc import Callable

from loadwise.balance.plan import Plan

_STEP = 1000.0
_MINUTE_S, _HOUR_S = 60, 3600


def amount(number: float, unit: str = "B") -> str:
    """A number of bytes in few characters, in powers of 1000 as disks and networks are sold: ``1.2 GB``."""
    for prefix in ("", "k", "M", "G", "T"):
        if number < _STEP:
            return f"{number:.3g} {prefix}{unit}"
        number /= _STEP
    return f"{number:,.1f} P{unit}"


def duration(seconds: float) -> str:
    """A time in few characters: ``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE_S:.0f} min" if seconds < 2 * _HOUR_S else f"{seconds / _HOUR_S:.1f} h"


def unit_of(resource: str) -> str:
    """The unit of a resource."""
    return "B" if resource == "disk" else "B/s"


def relative_amount(plan: Plan, resource: int) -> Callable[[float], str]:
    """How `Limits.relative` is said of a resource: ``36%`` of capacity, or ``1.08`` times the mean."""
    return "{:.0%}".format if plan.limits.by_capacity[resource] else "{:.2f}".format
