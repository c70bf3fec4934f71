"""How long the scores of brokers are used until they are measured again."""

from __future__ import annotations

from dataclasses import dataclass

_SHORT = 4
"""So many leases are short at first, each half of the next, because nothing is known of the brokers yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Lease:
    """A time in which scores stay."""

    number: int
    ends_at_s: float


def lease_from(now_s: float, last: Lease | None, steady_s: float) -> Lease:
    """Return the lease that follows ``last``; the first takes a sixteenth of ``steady_s``."""
    number = 0 if last is None else last.number + 1
    return Lease(number, now_s + steady_s * 0.5 ** max(_SHORT - number, 0))
