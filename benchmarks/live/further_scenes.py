"""Scenes of other shapes than those by which the settings were chosen: what somebody else would try."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from benchmarks.live.scenes import DAY_S, bad_readings, costly_topic, equal_members, hot_keys, slow_members
from benchmarks.live.world import Piece, Readings, Scene, zipf
from loadwise.assignor.model import Floats

_HALF_DAY_S = 43_200


def unequal_subscriptions(seed: int) -> Scene:
    """Two members read orders, two read clicks, two read both; the hot keys of both topics move every two hours."""
    rng = np.random.default_rng(seed)
    orders, clicks = frozenset({"orders"}), frozenset({"clicks"})
    subscriptions = {"m0": orders, "m1": orders, "m2": clicks, "m3": clicks}
    pieces = [
        Piece(
            start_s=at,
            rates={"clicks": zipf(30, 2400, 0.7, rng), "orders": zipf(30, 1600, 0.7, rng)},
            capacity=equal_members(6),
            subscriptions=subscriptions,
            is_shift=at > 0,
        )
        for at in range(0, DAY_S, 7200)
    ]
    return _scene(unequal_subscriptions, "subscriptions", pieces)


def stated_capacities(seed: int) -> Scene:
    """Six members of three sizes, whose users have stated these; the hot keys move every two hours."""
    rng = np.random.default_rng(seed)
    stated = {"m0": 4.0, "m1": 2.0, "m2": 2.0, "m3": 1.0, "m4": 1.0, "m5": 1.0}
    speeds = {member: 450.0 * size for member, size in stated.items()}
    pieces = [
        Piece(start_s=at, rates={"t": zipf(80, 3800, 0.6, rng)}, capacity=speeds, is_shift=at > 0)
        for at in range(0, DAY_S, 7200)
    ]
    return _scene(stated_capacities, "stated sizes", pieces, stated=stated)


def growing_topic(seed: int) -> Scene:
    """Five members; every three hours the topic gets twelve more partitions, and the keys are spread anew."""
    rng = np.random.default_rng(seed)
    pieces = [
        Piece(start_s=at, rates={"t": zipf(12 + at // 900, 3600, 0.7, rng)}, capacity=equal_members(5))
        for at in range(0, DAY_S, 10_800)
    ]
    return _scene(growing_topic, "growing topic", pieces)


def deleted_topics(seed: int) -> Scene:
    """Five members and four topics; every four hours one is deleted, and another is made an hour later."""
    rng = np.random.default_rng(seed)
    topics = {f"t{number}": zipf(15, 900, 0.8, rng) for number in range(4)}
    pieces = [Piece(start_s=0, rates=dict(topics), capacity=equal_members(5))]
    for number, at in enumerate(range(14_400, DAY_S - 3600, 14_400)):
        del topics[f"t{number}"]
        pieces.append(Piece(start_s=at, rates=dict(topics), capacity=equal_members(5)))
        topics[f"t{number + 4}"] = zipf(15, 900, 0.8, rng)
        pieces.append(Piece(start_s=at + 3600, rates=dict(topics), capacity=equal_members(5)))
    return _scene(deleted_topics, "deleted topics", pieces)


def noisy_neighbours(seed: int) -> Scene:
    """Six members; every half hour or so one of them is slowed to a quarter for 10 to 120 seconds."""
    rng = np.random.default_rng(seed)
    rates = {"t": zipf(60, 3600, 0.6, rng)}
    pieces, at = [Piece(start_s=0, rates=rates, capacity=equal_members(6))], 0
    while True:
        at += int(rng.integers(900, 2700))
        until = at + int(rng.integers(10, 120))
        if until >= DAY_S:
            return _scene(noisy_neighbours, "short slowness", pieces)
        slowed = equal_members(6) | {f"m{rng.integers(0, 6)}": 250.0}
        pieces.append(Piece(start_s=at, rates=rates, capacity=slowed, is_shift=True))
        pieces.append(Piece(start_s=until, rates=rates, capacity=equal_members(6)))
        at = until


def hot_pair(seed: int) -> Scene:
    """Four members, 40 light partitions, and two that fill half of a member each: every hour two others."""
    rng = np.random.default_rng(seed)
    pieces = []
    for at in range(0, DAY_S, 3600):
        rates = zipf(42, 2000, 0.3, rng)
        rates[rng.choice(42, 2, replace=False)] = 500.0
        pieces.append(Piece(start_s=at, rates={"t": rates}, capacity=equal_members(4), is_shift=at > 0))
    return _scene(hot_pair, "hot pair", pieces)


def nearly_full(seed: int) -> Scene:
    """Five members at 95 % when shared evenly; the hot keys move every three hours."""
    rng = np.random.default_rng(seed)
    pieces = [
        Piece(start_s=at, rates={"t": zipf(100, 4750, 0.5, rng)}, capacity=equal_members(5), is_shift=at > 0)
        for at in range(0, DAY_S, 10_800)
    ]
    return _scene(nearly_full, "nearly full", pieces)


def on_and_off(seed: int) -> Scene:
    """Five members; each of 60 partitions gets records for a minute and then none for a minute, in its own phase."""
    rng = np.random.default_rng(seed)
    rates, phase = zipf(60, 6400, 0.5, rng), rng.integers(0, 12, 60) * 10

    def at_time(at: int) -> Floats:
        return np.where((at + phase) % 120 < 60, rates, 0.0)

    pieces = [Piece(start_s=at, rates={"t": at_time(at)}, capacity=equal_members(5)) for at in range(0, DAY_S, 10)]
    return _scene(on_and_off, "on and off", pieces)


def time_zones(seed: int) -> Scene:
    """Six members; three topics have their days eight hours apart, and half of the scene is a weekend."""
    rng = np.random.default_rng(seed)
    shares = [zipf(24, 1.0, 0.7, rng) for _ in range(3)]
    pieces = []
    for at in range(0, DAY_S, 600):
        of_week = 1.0 if at < _HALF_DAY_S else 0.6
        waves = [1 + 0.8 * np.cos(2 * np.pi * (at / DAY_S + zone / 3)) for zone in range(3)]
        rates = {f"zone{zone}": shares[zone] * (1400 * of_week * wave) for zone, wave in enumerate(waves)}
        pieces.append(Piece(start_s=at, rates=rates, capacity=equal_members(6)))
    return _scene(time_zones, "time zones", pieces, noise=2.0)


def large_group(seed: int) -> Scene:
    """A hundred members of two speeds and 2,000 partitions; the hot keys move every two hours."""
    rng = np.random.default_rng(seed)
    speeds = {f"m{number}": 1000.0 if number % 3 else 500.0 for number in range(100)}
    pieces = [
        Piece(start_s=at, rates={"t": zipf(2000, 60_000, 0.5, rng)}, capacity=speeds, is_shift=at > 0)
        for at in range(0, DAY_S, 7200)
    ]
    return _scene(large_group, "large group", pieces)


def ageing_member(seed: int) -> Scene:
    """Six members; one gets slower for three hours, down to 30 %, until it is started anew: then another one does."""
    rng = np.random.default_rng(seed)
    rates = {"t": zipf(60, 3600, 0.6, rng)}
    pieces = []
    for at in range(0, DAY_S, 600):
        which, age = divmod(at, 10_800)
        slowed = {f"m{which % 6}": 1000.0 * (1 - 0.7 * age / 10_200)}
        pieces.append(Piece(start_s=at, rates=rates, capacity=equal_members(6) | slowed))
    return _scene(ageing_member, "ageing member", pieces)


def doubled_topic(seed: int) -> Scene:
    """Five members; after an hour the topic gets twice as many partitions, and each key goes to one of two."""
    rng = np.random.default_rng(seed)
    before = zipf(30, 3500, 0.7, rng)
    part = rng.uniform(0.2, 0.8, 30)
    after = np.concatenate([before * part, before * (1 - part)])
    pieces = [
        Piece(start_s=at, rates={"t": rates}, capacity=equal_members(5)) for at, rates in ((0, before), (3600, after))
    ]
    return _scene(doubled_topic, "doubled topic", pieces)


def drifting_costs(seed: int) -> Scene:
    """Six members of two speeds; records of two topics cost 1 and 4, and all rates drift by a twentieth each minute."""
    rng = np.random.default_rng(seed)
    speeds = equal_members(6) | {"m4": 600.0, "m5": 600.0}
    rates = {"cheap": zipf(30, 1700, 0.6, rng), "costly": zipf(30, 400, 0.6, rng)}
    total = {topic: each.sum() for topic, each in rates.items()}
    pieces = []
    for at in range(0, DAY_S, 60):
        pieces.append(Piece(start_s=at, rates=rates, capacity=speeds, cost={"costly": 4.0}))
        drifted = {topic: each * np.exp(rng.normal(0, 0.05, len(each))) for topic, each in rates.items()}
        rates = {topic: each * (total[topic] / each.sum()) for topic, each in drifted.items()}
    return _scene(drifting_costs, "drifting costs", pieces)


def missing_readings(seed: int) -> Scene:
    """The hot keys move, and each reading lacks 30 % of the partitions."""
    scene = hot_keys(seed)
    about = missing_readings.__doc__ or ""
    return replace(scene, name="missing readings", about=about, readings=Readings(missing=0.3))


def hourly_deploys(seed: int) -> Scene:
    """Six members; each hour all of them are deployed anew, one by one, and half an hour later the hot keys move."""
    rng = np.random.default_rng(seed)
    members, number = equal_members(6), 6
    pieces = []
    for hour in range(0, DAY_S, 3600):
        rates = {"t": zipf(60, 3600, 0.7, rng)}
        pieces.append(Piece(start_s=hour, rates=rates, capacity=members, is_shift=hour > 0))
        for at in range(hour + 1800, hour + 1800 + 6 * 45, 45):
            members = {member: speed for member, speed in members.items() if member != f"m{number - 6}"}
            pieces.append(Piece(start_s=at, rates=rates, capacity=members))
            members = members | {f"m{number}": 1000.0}
            number += 1
            pieces.append(Piece(start_s=at + 20, rates=rates, capacity=members))
    return _scene(hourly_deploys, "hourly deploys", pieces)


def silent_slowness(seed: int) -> Scene:
    """The slow members, who hand their records to threads, and so say nothing of themselves."""
    return replace(slow_members(seed), name="silent slowness", about=silent_slowness.__doc__ or "", silent=True)


def foreign_slowness(seed: int) -> Scene:
    """The slow members, who say nothing of themselves, and whose commits carry no notes."""
    return replace(silent_slowness(seed), name="foreign", about=foreign_slowness.__doc__ or "", notes=False)


def silent_and_bad(seed: int) -> Scene:
    """The bad readings, of members who say nothing of themselves."""
    return replace(bad_readings(seed), name="silent and bad", about=silent_and_bad.__doc__ or "", silent=True)


def silent_costs(seed: int) -> Scene:
    """The costly topic, of members who say nothing of themselves: a member seems slow by what it reads."""
    return replace(costly_topic(seed), name="silent costs", about=silent_costs.__doc__ or "", silent=True)


def stuck_records(seed: int) -> Scene:
    """Six members; every 20 minutes a record is tried again and again for ten, and its partition stands."""
    rng = np.random.default_rng(seed)
    rates, pieces = {"t": zipf(60, 3600, 0.5, rng)}, []
    for at in range(0, DAY_S, 1200):
        stuck = frozenset({("t", int(rng.integers(0, 60)))})
        pieces.append(Piece(start_s=at, rates=rates, capacity=equal_members(6), stuck=stuck if at else frozenset()))
        pieces.append(Piece(start_s=at + 600, rates=rates, capacity=equal_members(6)))
    return _scene(stuck_records, "stuck records", pieces)


def broker_away(seed: int) -> Scene:
    """Six members; every 20 minutes one of six brokers is away for two, with the partitions that it leads."""
    rng = np.random.default_rng(seed)
    rates, pieces = {"t": zipf(60, 3600, 0.5, rng)}, []
    for at in range(0, DAY_S, 1200):
        broker = int(rng.integers(0, 6))
        away = frozenset(("t", number) for number in range(broker, 60, 6))
        pieces.append(Piece(start_s=at, rates=rates, capacity=equal_members(6), away=away if at else frozenset()))
        pieces.append(Piece(start_s=at + 120, rates=rates, capacity=equal_members(6)))
    return _scene(broker_away, "broker away", pieces)


FURTHER: tuple[Callable[[int], Scene], ...] = (
    unequal_subscriptions,
    stated_capacities,
    growing_topic,
    deleted_topics,
    noisy_neighbours,
    hot_pair,
    nearly_full,
    on_and_off,
    time_zones,
    large_group,
    ageing_member,
    doubled_topic,
    drifting_costs,
    missing_readings,
    hourly_deploys,
    silent_slowness,
    foreign_slowness,
    silent_and_bad,
    silent_costs,
    stuck_records,
    broker_away,
)


def _scene(
    make: Callable[[int], Scene],
    name: str,
    pieces: list[Piece],
    *,
    noise: float = 1.0,
    stated: Mapping[str, float] | None = None,
) -> Scene:
    about = make.__doc__ or ""
    return Scene(name=name, about=about, pieces=tuple(pieces), end_s=DAY_S, noise=noise, stated=stated or {})
