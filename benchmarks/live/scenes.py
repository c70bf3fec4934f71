"""The scenes: 24 hours each, drawn from a seed. The settings were chosen by the first ten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

import numpy as np

from benchmarks.live.world import Piece, Rates, Readings, Scene, zipf

DAY_S = 86_400
_SPEED = 1000.0

Make = Callable[[int], Scene]
Rng = np.random.Generator

SCENES: list[Make] = []


def _listed(make: Make) -> Make:
    SCENES.append(make)
    return make


def _scene(name: str, **more: Any) -> Callable[[Callable[[Rng], Iterable[Piece]]], Make]:
    """Make a scene of a function that draws its pieces; ``more`` are fields of `Scene`."""

    def of(draw: Callable[[Rng], Iterable[Piece]]) -> Make:
        @wraps(draw)
        def make(seed: int) -> Scene:
            return Scene(name=name, pieces=tuple(draw(np.random.default_rng(seed))), end_s=DAY_S, **more)

        return _listed(make)

    return of


def equal_members(count: int, speed: float = _SPEED) -> dict[str, float]:
    """So many members of one speed, in records/s."""
    return {f"m{number}": speed for number in range(count)}


def _spells(rng: Rng, apart_s: tuple[int, int], lasting_s: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Begin and end of something that happens again and again."""
    until = 0
    while True:
        at = until + int(rng.integers(*apart_s))
        until = at + int(rng.integers(*lasting_s))
        if until >= DAY_S:
            return
        yield at, until


def _deploy(start: int, rates: Rates, members: Mapping[str, float], first: int) -> Iterator[Piece]:
    """Six members are deployed anew, one by one, each away for 20 seconds; ``first``: the number of the first one."""
    for number in range(first, first + 6):
        at = start + 45 * (number - first)
        members = {member: speed for member, speed in members.items() if member != f"m{number}"}
        yield Piece(start_s=at, rates=rates, capacity=members)
        members = {**members, f"m{number + 6}": _SPEED}
        yield Piece(start_s=at + 20, rates=rates, capacity=members)


@_scene("steady")
def steady(rng: Rng) -> Iterator[Piece]:
    """Constant rates by Zipf's law, Poisson arrivals, four members at 80 % when shared evenly."""
    yield Piece(start_s=0, rates={"t": zipf(48, 3200, 0.7, rng)}, capacity=equal_members(4))


@_scene("hot keys")
def hot_keys(rng: Rng) -> Iterator[Piece]:
    """Six members; every half hour to two hours the hot keys move to other partitions."""
    at = 0
    while at < DAY_S:
        yield Piece(start_s=at, rates={"t": zipf(60, 4000, 0.8, rng)}, capacity=equal_members(6), is_shift=at > 0)
        at += int(rng.integers(1800, 7200))


@_scene("day curve", noise=4.0)
def day(rng: Rng) -> Iterator[Piece]:
    """Five members; the load of one topic peaks at noon, that of the other at midnight, and noise beyond Poisson."""
    noon, midnight = zipf(30, 1.0, 0.7, rng), zipf(30, 1.0, 0.7, rng)
    for at in range(0, DAY_S, 600):
        wave = np.cos(2 * np.pi * at / DAY_S)
        rates = {"noon": noon * (1800 - 1400 * wave), "midnight": midnight * (1500 + 1100 * wave)}
        yield Piece(start_s=at, rates=rates, capacity=equal_members(5))


@_scene("bursts")
def bursts(rng: Rng) -> Iterator[Piece]:
    """Six members; every ten minutes or so three partitions get ten times their records for half a minute to five."""
    rates = zipf(60, 3600, 0.5, rng)
    yield Piece(start_s=0, rates={"t": rates}, capacity=equal_members(6))
    for at, until in _spells(rng, (300, 900), (30, 300)):
        burst = rates.copy()
        burst[rng.choice(60, 3, replace=False)] *= 10
        yield Piece(start_s=at, rates={"t": burst}, capacity=equal_members(6), is_shift=True)
        yield Piece(start_s=until, rates={"t": rates}, capacity=equal_members(6))


@_scene("slow members")
def slow_members(rng: Rng) -> Iterator[Piece]:
    """Six members, two of them always slower; every few hours another is slowed to a sixth for an hour."""
    speeds = equal_members(6) | {"m4": 500.0, "m5": 700.0}
    rates = {"t": zipf(60, 2900, 0.6, rng)}
    yield Piece(start_s=0, rates=rates, capacity=speeds)
    for at, until in _spells(rng, (5400, 10800), (3600, 3601)):
        slow = f"m{rng.integers(0, 4)}"
        yield Piece(start_s=at, rates=rates, capacity=speeds | {slow: speeds[slow] / 6}, is_shift=True)
        yield Piece(start_s=until, rates=rates, capacity=speeds)


@_scene("churn")
def churn(rng: Rng) -> Iterable[Piece]:
    """Members join, leave, die; twice a day all of them are deployed anew, one by one. Keys move now and then."""
    rates, members = zipf(60, 3600, 0.7, rng), equal_members(6)
    pieces = [Piece(start_s=0, rates={"t": rates}, capacity=members)]
    events: list[tuple[int, str]] = [(int(at), "keys") for at in rng.uniform(0, DAY_S, 8)]
    events += [(int(at), "die") for at in rng.uniform(0, DAY_S, 6)]
    events += [(start + 45 * step, f"deploy {step}") for start in (30_000, 60_000) for step in range(6)]
    number = 6
    for at, what in sorted(events):
        died: frozenset[str] = frozenset()
        if what == "keys":
            rates = zipf(60, 3600, 0.7, rng)
        elif what == "die":
            gone = str(rng.choice(sorted(members)))
            died = frozenset({gone})
            members = {member: speed for member, speed in members.items() if member != gone}
        else:
            gone = min(members, key=lambda member: int(member[1:]))
            members = {member: speed for member, speed in members.items() if member != gone}
        pieces.append(Piece(start_s=at, rates={"t": rates}, capacity=members, died=died, is_shift=what == "keys"))
        if what != "keys":  # a new one takes its place a little later
            members = members | {f"m{number}": _SPEED}
            number += 1
            pieces.append(Piece(start_s=at + 20, rates={"t": rates}, capacity=members))
    # The later of two pieces that start together.
    return {piece.start_s: piece for piece in sorted(pieces, key=lambda piece: piece.start_s)}.values()


@_scene("deploys")
def deploys(rng: Rng) -> Iterator[Piece]:
    """Six members; every three hours all of them are deployed anew, one after the other, each away for 20 seconds."""
    rates, members, number = {"t": zipf(60, 3600, 0.7, rng)}, equal_members(6), 0
    yield Piece(start_s=0, rates=rates, capacity=members)
    for start in range(10_800, DAY_S, 10_800):
        yield from _deploy(start, rates, members, number)
        number += 6
        members = {f"m{number + index}": _SPEED for index in range(6)}


@_scene("new topics")
def new_topics(rng: Rng) -> Iterator[Piece]:
    """Five members; every three hours another topic begins, and older ones fade."""
    topics = {"t0": zipf(24, 2000, 0.6, rng)}
    for number in range(8):
        yield Piece(start_s=number * 10_800, rates=dict(topics), capacity=equal_members(5), is_shift=number > 0)
        topics = {topic: rates * 0.6 for topic, rates in topics.items()}
        topics[f"t{number + 1}"] = zipf(24, 1200, 0.9, rng)


@_listed
def bad_readings(seed: int) -> Scene:
    """The hot keys again, but readings are 5 s late, lack a tenth of the partitions, are wrong or fail."""
    readings = Readings(late_s=5, missing=0.1, wrong=0.002, lost=0.05)
    return replace(hot_keys(seed), name="bad readings", readings=readings)


@_scene("costly topic")
def costly_topic(rng: Rng) -> Iterator[Piece]:
    """Six members; a record of one of two topics costs ten times that of the other; their hot keys move every hour."""
    for at in range(0, DAY_S, 3600):
        rates = {"cheap": zipf(30, 2000, 0.7, rng), "costly": zipf(30, 200, 0.7, rng)}
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6), cost={"costly": 10.0}, is_shift=at > 0)


@_scene("subscriptions")
def unequal_subscriptions(rng: Rng) -> Iterator[Piece]:
    """Two members read orders, two read clicks, two read both; the hot keys of both topics move every two hours."""
    orders, clicks = frozenset({"orders"}), frozenset({"clicks"})
    read = {"m0": orders, "m1": orders, "m2": clicks, "m3": clicks}
    for at in range(0, DAY_S, 7200):
        rates = {"clicks": zipf(30, 2400, 0.7, rng), "orders": zipf(30, 1600, 0.7, rng)}
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6), subscriptions=read, is_shift=at > 0)


_STATED = {"m0": 4.0, "m1": 2.0, "m2": 2.0, "m3": 1.0, "m4": 1.0, "m5": 1.0}


@_scene("stated sizes", stated=_STATED)
def stated_capacities(rng: Rng) -> Iterator[Piece]:
    """Six members of three sizes, whose users have stated these; the hot keys move every two hours."""
    speeds = {member: 450.0 * size for member, size in _STATED.items()}
    for at in range(0, DAY_S, 7200):
        yield Piece(start_s=at, rates={"t": zipf(80, 3800, 0.6, rng)}, capacity=speeds, is_shift=at > 0)


@_scene("growing topic")
def growing_topic(rng: Rng) -> Iterator[Piece]:
    """Five members; every three hours the topic gets twelve more partitions, and the keys are spread anew."""
    for at in range(0, DAY_S, 10_800):
        yield Piece(start_s=at, rates={"t": zipf(12 + at // 900, 3600, 0.7, rng)}, capacity=equal_members(5))


@_scene("deleted topics")
def deleted_topics(rng: Rng) -> Iterator[Piece]:
    """Five members and four topics; every four hours one is deleted, and another is made an hour later."""
    topics = {f"t{number}": zipf(15, 900, 0.8, rng) for number in range(4)}
    yield Piece(start_s=0, rates=dict(topics), capacity=equal_members(5))
    for number, at in enumerate(range(14_400, DAY_S - 3600, 14_400)):
        del topics[f"t{number}"]
        yield Piece(start_s=at, rates=dict(topics), capacity=equal_members(5))
        topics[f"t{number + 4}"] = zipf(15, 900, 0.8, rng)
        yield Piece(start_s=at + 3600, rates=dict(topics), capacity=equal_members(5))


@_scene("short slowness")
def noisy_neighbours(rng: Rng) -> Iterator[Piece]:
    """Six members; every half hour or so one of them is slowed to a quarter for 10 to 120 seconds."""
    rates = {"t": zipf(60, 3600, 0.6, rng)}
    yield Piece(start_s=0, rates=rates, capacity=equal_members(6))
    for at, until in _spells(rng, (900, 2700), (10, 120)):
        slowed = equal_members(6) | {f"m{rng.integers(0, 6)}": 250.0}
        yield Piece(start_s=at, rates=rates, capacity=slowed, is_shift=True)
        yield Piece(start_s=until, rates=rates, capacity=equal_members(6))


@_scene("hot pair")
def hot_pair(rng: Rng) -> Iterator[Piece]:
    """Four members, 40 light partitions, and two that fill half of a member each: every hour two others."""
    for at in range(0, DAY_S, 3600):
        rates = zipf(42, 2000, 0.3, rng)
        rates[rng.choice(42, 2, replace=False)] = 500.0
        yield Piece(start_s=at, rates={"t": rates}, capacity=equal_members(4), is_shift=at > 0)


@_scene("nearly full")
def nearly_full(rng: Rng) -> Iterator[Piece]:
    """Five members at 95 % when shared evenly; the hot keys move every three hours."""
    for at in range(0, DAY_S, 10_800):
        yield Piece(start_s=at, rates={"t": zipf(100, 4750, 0.5, rng)}, capacity=equal_members(5), is_shift=at > 0)


@_scene("on and off")
def on_and_off(rng: Rng) -> Iterator[Piece]:
    """Five members; each of 60 partitions gets records for a minute and then none for a minute, in its own phase."""
    rates, phase = zipf(60, 6400, 0.5, rng), rng.integers(0, 12, 60) * 10
    for at in range(0, DAY_S, 10):
        yield Piece(start_s=at, rates={"t": np.where((at + phase) % 120 < 60, rates, 0.0)}, capacity=equal_members(5))


@_scene("time zones", noise=2.0)
def time_zones(rng: Rng) -> Iterator[Piece]:
    """Six members; three topics have their days eight hours apart, and half of the scene is a weekend."""
    shares = [zipf(24, 1.0, 0.7, rng) for _ in range(3)]
    for at in range(0, DAY_S, 600):
        of_week = 1.0 if at < DAY_S // 2 else 0.6
        waves = [1 + 0.8 * np.cos(2 * np.pi * (at / DAY_S + zone / 3)) for zone in range(3)]
        rates = {f"zone{zone}": shares[zone] * (1400 * of_week * wave) for zone, wave in enumerate(waves)}
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6))


@_scene("large group")
def large_group(rng: Rng) -> Iterator[Piece]:
    """A hundred members of two speeds and 2,000 partitions; the hot keys move every two hours."""
    speeds = {f"m{number}": 1000.0 if number % 3 else 500.0 for number in range(100)}
    for at in range(0, DAY_S, 7200):
        yield Piece(start_s=at, rates={"t": zipf(2000, 60_000, 0.5, rng)}, capacity=speeds, is_shift=at > 0)


@_scene("ageing member")
def ageing_member(rng: Rng) -> Iterator[Piece]:
    """Six members; one gets slower for three hours, down to 30 %, until it is started anew: then another one does."""
    rates = {"t": zipf(60, 3600, 0.6, rng)}
    for at in range(0, DAY_S, 600):
        which, age = divmod(at, 10_800)
        slowed = {f"m{which % 6}": 1000.0 * (1 - 0.7 * age / 10_200)}
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6) | slowed)


@_scene("doubled topic")
def doubled_topic(rng: Rng) -> Iterator[Piece]:
    """Five members; after an hour the topic gets twice as many partitions, and each key goes to one of two."""
    before = zipf(30, 3500, 0.7, rng)
    part = rng.uniform(0.2, 0.8, 30)
    for at, rates in ((0, before), (3600, np.concatenate([before * part, before * (1 - part)]))):
        yield Piece(start_s=at, rates={"t": rates}, capacity=equal_members(5))


@_scene("drifting costs")
def drifting_costs(rng: Rng) -> Iterator[Piece]:
    """Six members of two speeds; records of two topics cost 1 and 4, and all rates drift by a twentieth each minute."""
    speeds = equal_members(6) | {"m4": 600.0, "m5": 600.0}
    rates = {"cheap": zipf(30, 1700, 0.6, rng), "costly": zipf(30, 400, 0.6, rng)}
    total = {topic: each.sum() for topic, each in rates.items()}
    for at in range(0, DAY_S, 60):
        yield Piece(start_s=at, rates=rates, capacity=speeds, cost={"costly": 4.0})
        drifted = {topic: each * np.exp(rng.normal(0, 0.05, len(each))) for topic, each in rates.items()}
        rates = {topic: each * (total[topic] / each.sum()) for topic, each in drifted.items()}


@_listed
def missing_readings(seed: int) -> Scene:
    """The hot keys move, and each reading lacks 30 % of the partitions."""
    return replace(hot_keys(seed), name="missing readings", readings=Readings(missing=0.3))


@_scene("hourly deploys")
def hourly_deploys(rng: Rng) -> Iterator[Piece]:
    """Six members; each hour all of them are deployed anew, one by one, and half an hour later the hot keys move."""
    for number, hour in enumerate(range(0, DAY_S, 3600)):
        rates, members = {"t": zipf(60, 3600, 0.7, rng)}, {f"m{6 * number + index}": _SPEED for index in range(6)}
        yield Piece(start_s=hour, rates=rates, capacity=members, is_shift=hour > 0)
        yield from _deploy(hour + 1800, rates, members, 6 * number)


@_listed
def silent_slowness(seed: int) -> Scene:
    """The slow members, who hand their records to threads, and so say nothing of themselves."""
    return replace(slow_members(seed), name="silent slowness", silent=True)


@_listed
def foreign_slowness(seed: int) -> Scene:
    """The slow members, who say nothing of themselves, and whose commits carry no notes."""
    return replace(silent_slowness(seed), name="foreign", notes=False)


@_listed
def silent_and_bad(seed: int) -> Scene:
    """The bad readings, of members who say nothing of themselves."""
    return replace(bad_readings(seed), name="silent and bad", silent=True)


@_listed
def silent_costs(seed: int) -> Scene:
    """The costly topic, of members who say nothing of themselves: a member seems slow by what it reads."""
    return replace(costly_topic(seed), name="silent costs", silent=True)


@_scene("stuck records")
def stuck_records(rng: Rng) -> Iterator[Piece]:
    """Six members; every 20 minutes a record is tried again and again for ten, and its partition stands."""
    rates = {"t": zipf(60, 3600, 0.5, rng)}
    for at in range(0, DAY_S, 1200):
        stuck = frozenset({("t", int(rng.integers(0, 60)))})
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6), stuck=stuck if at else frozenset())
        yield Piece(start_s=at + 600, rates=rates, capacity=equal_members(6))


@_scene("broker away")
def broker_away(rng: Rng) -> Iterator[Piece]:
    """Six members; every 20 minutes one of six brokers is away for two, with the partitions that it leads."""
    rates = {"t": zipf(60, 3600, 0.5, rng)}
    for at in range(0, DAY_S, 1200):
        broker = int(rng.integers(0, 6))
        away = frozenset(("t", number) for number in range(broker, 60, 6))
        yield Piece(start_s=at, rates=rates, capacity=equal_members(6), away=away if at else frozenset())
        yield Piece(start_s=at + 120, rates=rates, capacity=equal_members(6))
