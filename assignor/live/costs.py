"""What records cost, where users say that those of one topic cost more than those of another.

Everything is then in records that cost 1: what arrives and waits, and what members can process. A member measures how
many of its records it processes in a second, and which ones these were the leader knows by the group's commits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadwise.assignor.model import Floats

_HALF_LIFE_MS = 60_000
"""As long as members remember what they measure of themselves."""


class MeanCosts:
    """What a record has cost each member in the mean lately."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        """Records of each member, and what they cost, both forgotten by half in a minute."""

    def saw(self, members: Sequence[str], records: Floats, cost: Floats, elapsed_ms: int) -> None:
        """These members have processed so many records since the last call, which cost so much; all others are gone."""
        kept = 0.5 ** (elapsed_ms / _HALF_LIFE_MS)
        before = (self._seen.get(member, (0.0, 0.0)) for member in members)
        each = zip(members, before, records.tolist(), cost.tolist(), strict=True)
        self._seen = {member: (old[0] * kept + count, old[1] * kept + paid) for member, old, count, paid in each}

    def of(self, member: str) -> float:
        """The mean cost of its records; of everybody's where it has processed none, and 1 where nobody has any."""
        records, cost = self._seen.get(member, (0.0, 0.0))
        if not records:
            records, cost = np.array([*self._seen.values(), (0.0, 0.0)]).sum(axis=0).tolist()
        return cost / records if records else 1.0
