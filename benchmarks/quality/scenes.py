"""The scenes of the benchmark: groups over time, with loads of many shapes, drawn from seeds or real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.assignor.model import Floats, Member

TOPICS = {"clicks": 96, "orders": 64, "audit": 48, "mail": 32}
"""Topic to partitions: 240 together."""
MEMBERS = 12
RACKS = ("rack-a", "rack-b", "rack-c")

Loads = Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Round:
    """One rebalance: the members, the load of each partition, and the load that the assignor sees."""

    members: Sequence[Member]
    """Without their partitions, which come from the assignment of the round before."""
    load: Loads
    """The load that measures the assignment; topic to float64[partitions]."""
    told: Loads
    """The load that the assignor sees: NaN where it is hidden."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A group over time."""

    name: str
    partitions: Mapping[str, int]
    rounds: Sequence[Round]
    racks: Mapping[str, Sequence[Sequence[str]]] | None = None
    """Racks of each partition's replicas, if they matter here."""


def scenes(seed: int) -> list[Scene]:
    """All made-up scenes, drawn with a seed: the same for the same seed, on every machine."""
    return [make(np.random.default_rng((seed, number))) for number, make in enumerate(_MADE_UP)]


def stream(hours: Iterable[tuple[int, int]], partitions: int) -> Scene:
    """A real stream: (week, partition) of every record. Three members, a fourth for the second half of the weeks."""
    counted = np.array(list(hours))
    load = np.zeros((counted[:, 0].max() + 1, partitions))
    np.add.at(load, (counted[:, 0], counted[:, 1]), 1.0)
    members = _members(4, {"flights": partitions})
    rounds = [
        _told_all(members if week >= len(load) // 2 else members[:3], {"flights": row}) for week, row in enumerate(load)
    ]
    return Scene("flights", {"flights": partitions}, rounds)


def _zipf(rng: np.random.Generator) -> Scene:
    return _one_round("zipf", _zipf_loads(rng))


def _pareto(rng: np.random.Generator) -> Scene:
    return _one_round("pareto", _split(1 + rng.pareto(1.3, _SIZE)))


def _capacities(rng: np.random.Generator) -> Scene:
    members = _members(MEMBERS, capacities=rng.choice([0.5, 1.0, 2.0, 4.0], MEMBERS).tolist())
    return _one_round("capacities", _lognormal(rng), members)


def _subscriptions(rng: np.random.Generator) -> Scene:
    """Members that read about half of the topics each."""
    names = list(TOPICS)
    members = [
        Member(
            id=f"m{number:02d}", topics=[topic for topic in names if rng.random() < 0.5 or topic == names[number % 4]]
        )
        for number in range(MEMBERS)
    ]
    return _one_round("subscriptions", _zipf_loads(rng), members)


def _racks(rng: np.random.Generator) -> Scene:
    """Three racks, every partition with replicas on two of them."""
    racks = {
        topic: [[RACKS[rack] for rack in rng.choice(len(RACKS), 2, replace=False)] for _ in range(count)]
        for topic, count in TOPICS.items()
    }
    members = _members(MEMBERS, racks=[RACKS[number % len(RACKS)] for number in range(MEMBERS)])
    return _one_round("racks", _lognormal(rng), members, racks)


def _unknown(rng: np.random.Generator) -> Scene:
    """A fifth of the loads is not known to the assignor."""
    load = _zipf_loads(rng)
    told = {topic: np.where(rng.random(len(row)) < 0.2, np.nan, row) for topic, row in load.items()}
    return Scene("unknown loads", TOPICS, [Round(_members(MEMBERS), load, told)])


def _join(rng: np.random.Generator) -> Scene:
    """One member joins, then two at once."""
    load, members = _lognormal(rng), _members(MEMBERS + 3)
    return Scene("join", TOPICS, [_told_all(members[:count], load) for count in (MEMBERS, MEMBERS + 1, MEMBERS + 3)])


def _leave(rng: np.random.Generator) -> Scene:
    """One member leaves, then two at once."""
    load, members = _lognormal(rng), _members(MEMBERS)
    order = rng.permutation(MEMBERS).tolist()
    rounds = [_told_all([members[number] for number in sorted(order[gone:])], load) for gone in (0, 1, 3)]
    return Scene("leave", TOPICS, rounds)


def _drift(rng: np.random.Generator) -> Scene:
    """A day of 48 rounds: every topic has a tide, every partition noise; a member joins, and another leaves."""
    base, phase = _zipf_loads(rng), rng.random(len(TOPICS))
    walk = {topic: np.zeros(count) for topic, count in TOPICS.items()}
    members = _members(MEMBERS + 1)
    rounds = []
    for step in range(48):
        load = {}
        for (topic, row), shift in zip(base.items(), phase, strict=True):
            walk[topic] = 0.98 * walk[topic] + rng.normal(0, 0.04, len(row))
            load[topic] = row * (1 + 0.6 * np.sin(2 * np.pi * (step / 48 + shift))) * np.exp(walk[topic])
        here = members[:MEMBERS] if step < 16 else members if step < 32 else members[1:]
        rounds.append(_told_all(here, load))
    return Scene("drift", TOPICS, rounds)


_MADE_UP = (_zipf, _pareto, _capacities, _subscriptions, _racks, _unknown, _join, _leave, _drift)

_SIZE = sum(TOPICS.values())
_EXPONENT = (
    0.7  # the steepest at which no partition alone outweighs a fair share, which would make any answer look good
)


def _one_round(
    name: str,
    load: Loads,
    members: Sequence[Member] = (),
    racks: Mapping[str, Sequence[Sequence[str]]] | None = None,
) -> Scene:
    return Scene(name, TOPICS, [_told_all(members or _members(MEMBERS), load)], racks)


def _told_all(members: Sequence[Member], load: Loads) -> Round:
    return Round(members, load, load)


def _members(
    count: int,
    topics: Mapping[str, int] = TOPICS,
    *,
    capacities: Sequence[float] = (),
    racks: Sequence[str] = (),
) -> list[Member]:
    return [
        Member(
            id=f"m{number:02d}",
            topics=list(topics),
            capacity=capacities[number] if capacities else 1.0,
            rack=racks[number] if racks else None,
        )
        for number in range(count)
    ]


def _zipf_loads(rng: np.random.Generator) -> Loads:
    return _split(1000.0 / rng.permutation(np.arange(1, _SIZE + 1)) ** _EXPONENT)


def _lognormal(rng: np.random.Generator) -> Loads:
    return _split(rng.lognormal(0, 0.8, _SIZE))


def _split(flat: Floats) -> Loads:
    return dict(zip(TOPICS, np.split(flat, np.cumsum(list(TOPICS.values()))[:-1]), strict=True))
