"""Scenes that several tests play with real groups. What a scene measures it returns as figures."""

from __future__ import annotations

import time

from figures import Figure
from live_group import LiveGroup

WARM_S = 20.0
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


def drift(group: LiveGroup, clients: tuple[str, ...], speed: float = 900.0) -> list[Figure]:
    """The worst shift for the present assignment: all records go to one member, half as many again as it can process.

    ``speed`` is how many records/s a member processes; half of what three members can process arrives.
    """
    for client in clients:
        group.join(client, speed=speed)
    group.wait_until_at_rest(len(clients), why="joining")
    group.wait_until(lambda: group.lag <= speed, why="catching up")
    began = time.monotonic()
    group.overload(max(group.members, key=lambda member: len(member.owned)), 1.5 * speed)
    group.wait_until(lambda: group.load_rebalances() >= 1, why="a request for a rebalance")
    requested_s = time.monotonic() - began
    group.wait_until(lambda: group.lag <= speed, why="catching up after the shift")
    return [
        Figure("first request for a rebalance, s", requested_s, 15),
        Figure("lag below a second's work, s", time.monotonic() - began, 30),
        requests(group),
    ]


def slow(group: LiveGroup, clients: tuple[str, ...]) -> list[Figure]:
    """Members process 900, 900 and 120 records/s, and 900 arrive in 12 partitions: the slow one gets no more than one.

    It can process one partition of 75 records/s, and gets none where that would make it the busiest.
    """
    for client, speed in zip(clients, (900.0, 900.0, 120.0), strict=True):
        last = group.join(client, speed=speed)
    began = group.wait_until_at_rest(3, why="joining")
    group.wait_until(lambda: len(last.owned) <= 1 and group.settled(3), why="relief of the slow member")
    relieved_s = time.monotonic() - began
    group.wait_until(lambda: group.lag <= 900, why="catching up")
    return [
        Figure("slow member relieved, s", relieved_s, 30),
        Figure("lag below 900, s", time.monotonic() - began, 40),
        requests(group),
    ]


def shape(group: LiveGroup, clients: tuple[str, ...]) -> list[Figure]:
    """Members process 600 records/s, and 900 arrive: two partitions of one suddenly get 360 each, 780/s for its 600."""
    for client in clients:
        group.join(client, speed=600.0)
    group.wait_until(lambda: group.settled(len(clients)), why="joining")
    group.wait_until(lambda: group.lag <= 900, why="catching up")
    before = group.processed
    group.wait_until(lambda: group.processed - before >= 900 * WARM_S, why="going on")
    assert group.load_rebalances() == 0
    began, generation = time.monotonic(), group.generation
    hot = max((member.owned for member in group.members), key=len)[:2]
    group.arrivals.rates = [360.0 if partition in hot else 18.0 for partition in range(12)]
    group.wait_until(lambda: group.load_rebalances() >= 1, why="a request for a rebalance")
    group.wait_until(lambda: group.generation > generation and group.settled(len(clients)), why="the rebalance")
    over_s = time.monotonic() - began
    group.wait_until(lambda: group.lag <= 900, why="catching up after the shift")
    return [
        Figure("first rebalance over, s", over_s, 18),
        Figure("lag below a second, s", time.monotonic() - began, 25),
        requests(group),
    ]


def requests(group: LiveGroup, before: int = 0) -> Figure:
    """How many rebalances were requested for the load, beyond those before."""
    return Figure("rebalances requested", group.load_rebalances() - before, 3 if group.assignor == "weighted" else 2)
