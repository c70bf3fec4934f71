"""Scenes that real groups are played more than once."""

from __future__ import annotations

import time

from live_group import LiveGroup

MINUTE_S = 60.0
DRIFT_RATES = [112.5] * 12


def drift(group: LiveGroup, clients: tuple[str, ...]) -> None:
    """The worst shift for the present assignment: all of it goes to one member, 450/s more than that can process."""
    for client in clients:
        group.join(client)
    group.wait_until(lambda: group.settled(len(clients)), why="joining")
    group.wait_until(lambda: group.lag <= 900, why="catching up")
    began, generation = time.monotonic(), group.generation
    hot = set(max((member.owned for member in group.members), key=len))
    group.arrivals.rates = [1350 / len(hot) if partition in hot else 0.0 for partition in range(12)]
    group.wait_until(lambda: group.load_rebalances() >= 1, MINUTE_S, why="a request for a rebalance")
    group.wait_until(lambda: group.lag <= 900, MINUTE_S - (time.monotonic() - began), why="a lag below 900")
    assert group.generation - generation <= (3 if group.assignor == "weighted" else 4)
