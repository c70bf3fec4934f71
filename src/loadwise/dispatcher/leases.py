"""How long the scores of brokers are used until they are measured again."""

from __future__ import annotations

from dataclasses import dataclass

_SHORT = 4
"""So many leases are short at first, each half of the next, because nothing is known of the brokers yet."""
_BRIEF = 1 / 4
"""The part of a lease that one takes while a broker is slow: each shows by a few records whether it has recovered."""


@dataclass(frozen=True, slots=True, eq=False)
class Lease:
    """A time in which scores stay."""

    number: int
    ends_at_s: float


def lease_from(now_s: float, last: Lease | None, steady_s: float, *, is_brief: bool = False) -> Lease:
    """Return the lease that follows ``last``; the first takes a sixteenth of ``steady_s``.

    ``is_brief``: a broker is slow.
    """
    number = 0 if last is None else last.number + 1
    part = min(0.5 ** max(_SHORT - number, 0), _BRIEF if is_brief else 1.0)
    return Lease(number, now_s + steady_s * part)
