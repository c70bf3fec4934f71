"""The scenes: 24 hours each, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.live.world import Piece, Readings, Scene, zipf

DAY_S = 86_400
_SPEED = 1000.0


def equal_members(count: int, speed: float = _SPEED) -> dict[str, float]:
    """So many members of one speed, in records/s."""
    return {f"m{number}": speed for number in range(count)}


def steady(seed: int) -> Scene:
    """Constant rates by Zipf's law, Poisson arrivals, four members at 80 % when shared evenly."""
    rng = np.random.default_rng(seed)
    piece = Piece(start_s=0, rates={"t": zipf(48, 3200, 0.7, rng)}, capacity=equal_members(4))
    return Scene(name="steady", about=steady.__doc__ or "", pieces=(piece,), end_s=DAY_S)


def hot_keys(seed: int) -> Scene:
    """Six members; every half hour to two hours the hot keys move to other partitions."""
    rng = np.random.default_rng(seed)
    pieces: list[Piece] = []
    at = 0
    while at < DAY_S:
        pieces.append(
            Piece(start_s=at, rates={"t": zipf(60, 4000, 0.8, rng)}, capacity=equal_members(6), is_shift=bool(pieces))
        )
        at += int(rng.integers(1800, 7200))
    return Scene(name="hot keys", about=hot_keys.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def day(seed: int) -> Scene:
    """Five members; the load of one topic peaks at noon, that of the other at midnight, and noise beyond Poisson."""
    rng = np.random.default_rng(seed)
    noon, midnight = zipf(30, 1.0, 0.7, rng), zipf(30, 1.0, 0.7, rng)
    pieces = []
    for at in range(0, DAY_S, 600):
        wave = np.cos(2 * np.pi * at / DAY_S)
        rates = {"noon": noon * (1800 - 1400 * wave), "midnight": midnight * (1500 + 1100 * wave)}
        pieces.append(Piece(start_s=at, rates=rates, capacity=equal_members(5)))
    return Scene(name="day curve", about=day.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S, noise=4.0)


def bursts(seed: int) -> Scene:
    """Six members; every ten minutes or so three partitions get ten times their records for half a minute to five."""
    rng = np.random.default_rng(seed)
    rates = zipf(60, 3600, 0.5, rng)
    pieces, at = [Piece(start_s=0, rates={"t": rates}, capacity=equal_members(6))], 0
    while True:
        at += int(rng.integers(300, 900))
        until = at + int(rng.integers(30, 300))
        if until >= DAY_S:
            break
        burst = rates.copy()
        burst[rng.choice(60, 3, replace=False)] *= 10
        pieces.append(Piece(start_s=at, rates={"t": burst}, capacity=equal_members(6), is_shift=True))
        pieces.append(Piece(start_s=until, rates={"t": rates}, capacity=equal_members(6)))
        at = until
    return Scene(name="bursts", about=bursts.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def slow_members(seed: int) -> Scene:
    """Six members, two of them always slower; every few hours another is slowed to a sixth for an hour."""
    rng = np.random.default_rng(seed)
    speeds = equal_members(6) | {"m4": 500.0, "m5": 700.0}
    rates = zipf(60, 2900, 0.6, rng)
    pieces, at = [Piece(start_s=0, rates={"t": rates}, capacity=speeds)], 0
    while True:
        at += int(rng.integers(5400, 10800))
        if at + 3600 >= DAY_S:
            break
        slow = f"m{rng.integers(0, 4)}"
        pieces.append(Piece(start_s=at, rates={"t": rates}, capacity=speeds | {slow: speeds[slow] / 6}, is_shift=True))
        pieces.append(Piece(start_s=at + 3600, rates={"t": rates}, capacity=speeds))
        at += 3600
    return Scene(name="slow members", about=slow_members.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def churn(seed: int) -> Scene:
    """Members join, leave, die; twice a day all of them are deployed anew, one by one. Keys move now and then."""
    rng = np.random.default_rng(seed)
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
    ordered = sorted(pieces, key=lambda piece: piece.start_s)
    return Scene(name="churn", about=churn.__doc__ or "", pieces=_one_a_second(ordered), end_s=DAY_S)


def deploys(seed: int) -> Scene:
    """Six members; every three hours all of them are deployed anew, one after the other, each away for 20 seconds."""
    rng = np.random.default_rng(seed)
    rates, members, number = {"t": zipf(60, 3600, 0.7, rng)}, equal_members(6), 6
    pieces = [Piece(start_s=0, rates=rates, capacity=members)]
    for start in range(10_800, DAY_S, 10_800):
        for at in range(start, start + 6 * 45, 45):
            members = {member: speed for member, speed in members.items() if member != f"m{number - 6}"}
            pieces.append(Piece(start_s=at, rates=rates, capacity=members))
            members = members | {f"m{number}": _SPEED}
            number += 1
            pieces.append(Piece(start_s=at + 20, rates=rates, capacity=members))
    return Scene(name="deploys", about=deploys.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def costly_topic(seed: int) -> Scene:
    """Six members; a record of one of two topics costs ten times that of the other; their hot keys move every hour."""
    rng = np.random.default_rng(seed)
    pieces = [
        Piece(
            start_s=at,
            rates={"cheap": zipf(30, 2000, 0.7, rng), "costly": zipf(30, 200, 0.7, rng)},
            capacity=equal_members(6),
            cost={"costly": 10.0},
            is_shift=at > 0,
        )
        for at in range(0, DAY_S, 3600)
    ]
    return Scene(name="costly topic", about=costly_topic.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def new_topics(seed: int) -> Scene:
    """Five members; every three hours another topic begins, and older ones fade."""
    rng = np.random.default_rng(seed)
    pieces, topics = [], {"t0": zipf(24, 2000, 0.6, rng)}
    for number in range(8):
        pieces.append(
            Piece(start_s=number * 10_800, rates=dict(topics), capacity=equal_members(5), is_shift=number > 0)
        )
        topics = {topic: rates * 0.6 for topic, rates in topics.items()}
        topics[f"t{number + 1}"] = zipf(24, 1200, 0.9, rng)
    return Scene(name="new topics", about=new_topics.__doc__ or "", pieces=tuple(pieces), end_s=DAY_S)


def bad_readings(seed: int) -> Scene:
    """The hot keys again, but readings are 5 s late, lack a tenth of the partitions, are wrong or fail."""
    scene = hot_keys(seed)
    return replace(
        scene,
        name="bad readings",
        about=bad_readings.__doc__ or "",
        readings=Readings(late_s=5, missing=0.1, wrong=0.002, lost=0.05),
    )


SCENES: tuple[Callable[[int], Scene], ...] = (
    steady,
    hot_keys,
    day,
    bursts,
    slow_members,
    churn,
    deploys,
    new_topics,
    bad_readings,
    costly_topic,
)


def _one_a_second(pieces: list[Piece]) -> tuple[Piece, ...]:
    """The later of two pieces that start together."""
    return tuple({piece.start_s: piece for piece in pieces}.values())
