"""Scenes that real groups are played more than once: who is in the group, and what happens to it."""

from __future__ import annotations

import time

import pytest
from live_group import LiveGroup

MINUTE_S, WARM_S = 60.0, 20.0
DRIFT_RATES = [112.5] * 12
KAFKA_PYTHON, AIOKAFKA, CONFLUENT = "kafka-python", "aiokafka", "confluent-consumer"
CLIENTS = {
    KAFKA_PYTHON: (KAFKA_PYTHON,) * 3,
    AIOKAFKA: (AIOKAFKA,) * 3,
    "mixed": (AIOKAFKA, KAFKA_PYTHON, AIOKAFKA),
    "confluent": (CONFLUENT, AIOKAFKA, KAFKA_PYTHON),
}
GROUPS = {
    name + suffix: (clients, assignor)
    for suffix, assignor in (("", "weighted"), ("-cooperative", "cooperative-weighted"))
    for name, clients in CLIENTS.items()
}
"""Three members of one client or of several, eager and cooperative."""
SOME = {name: GROUPS[name] for name in (KAFKA_PYTHON, f"{AIOKAFKA}-cooperative", "mixed", "confluent-cooperative")}
OTHERS = {name: group for name, group in GROUPS.items() if name not in SOME}
NAMES = [*SOME, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
"""The others are played where they are asked for: `make test-live SCENES=live`."""


def played_with(name: str) -> dict[str, tuple[tuple[str, ...], str]]:
    """The groups that are played side by side with that of a name."""
    return SOME if name in SOME else OTHERS


def drift(group: LiveGroup, clients: tuple[str, ...]) -> str:
    """The worst shift for the present assignment: all of it goes to one member, 450/s more than that can process.

    Answers after how long what was reached.
    """
    for client in clients:
        group.join(client)
    group.wait_until_at_rest(len(clients), why="joining")
    group.wait_until(lambda: group.lag <= 900, why="catching up")
    began = time.monotonic()
    hot = set(max((member.owned for member in group.members), key=len))
    group.arrivals.rates = [1350 / len(hot) if partition in hot else 0.0 for partition in range(12)]
    group.wait_until(lambda: group.load_rebalances() >= 1, MINUTE_S, why="a request for a rebalance")
    asked = time.monotonic()
    group.wait_until(lambda: group.lag <= 900, MINUTE_S - (asked - began), why="a lag below 900")
    return _told(group, asked - began, time.monotonic() - began)


def slow(group: LiveGroup, clients: tuple[str, ...]) -> str:
    """Members of 900, 900 and 120 records/s, 900 arriving in 12 partitions: a minute later nobody is behind.

    The slow one can do one partition of 75/s. It is given no more, at the latest by a rebalance for the load, and none
    where that would make it the busiest.
    """
    for client, speed in zip(clients, (900.0, 900.0, 120.0), strict=True):
        last = group.join(client, speed=speed)
    began = group.wait_until_at_rest(3, why="joining")
    group.wait_until(lambda: len(last.owned) <= 1 and group.settled(3), MINUTE_S, why="relief of the slow one")
    relieved = time.monotonic()
    group.wait_until(lambda: group.lag <= 900, MINUTE_S - (relieved - began), why="a lag below 900")
    return _told(group, relieved - began, time.monotonic() - began)


def shape(group: LiveGroup, clients: tuple[str, ...]) -> str:
    """Members of 600 records/s, 900 arriving: two partitions of one suddenly get 360 each, 780/s for its 600."""
    for client in clients:
        group.join(client, speed=600.0)
    group.wait_until(lambda: group.settled(len(clients)), why="joining")
    group.wait_until(lambda: group.lag <= 900, why="catching up")
    before = sum(group.done.values())
    group.wait_until(lambda: sum(group.done.values()) - before >= 900 * WARM_S, why="going on")
    assert group.load_rebalances() == 0
    began, generation = time.monotonic(), group.generation
    hot = max((member.owned for member in group.members), key=len)[:2]
    group.arrivals.rates = [360.0 if partition in hot else 18.0 for partition in range(12)]
    group.wait_until(lambda: group.load_rebalances() >= 1, MINUTE_S, why="a request for a rebalance")
    group.wait_until(lambda: group.generation > generation and group.settled(len(clients)), why="the rebalance")
    acted = time.monotonic()
    group.wait_until(lambda: group.lag <= 900, MINUTE_S - (acted - began), why="a lag below 900")
    return _told(group, acted - began, time.monotonic() - began)


def _told(group: LiveGroup, acted_s: float, even_s: float) -> str:
    asked = group.load_rebalances()
    assert asked <= (3 if group.assignor == "weighted" else 2)
    return f"acted after {acted_s:.0f} s, lag below 900 after {even_s:.0f} s, {asked} rebalances asked for"
