"""Looks for a placement of replicas within limits. Pure."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.placement import Placement
from loadwise.balance.rows import NONE, Floats, Rows

_ALIKE = 0.9
"""Of moves that gain nearly as much a byte, the one that gains most is taken: fewer replicas move."""
_AT_ONCE = 0.2
"""Of what a broker has above its limits: then comes the broker that is furthest above them by now."""
_FEW = 100
"""Replicas of a broker: more are tried only if none of those that promise most can move."""
_PARTNERS = 8
"""Replicas are exchanged with those of so many brokers, the least loaded ones."""


class _Change(NamedTuple):
    partition: int
    replicas: Rows


_ChangesFrom: TypeAlias = Callable[[Placement, Bounds, int], list[_Change]]


def empty(placement: Placement, bounds: Bounds) -> None:
    """Move the replicas of emptied brokers, the heaviest first, to where they are permitted and fit best.

    Those that load no broker go to the brokers with the fewest replicas.
    """
    held = np.bincount(placement.replicas[placement.replicas != NONE], minlength=len(placement.load))
    for broker in np.flatnonzero(placement.emptied):
        here = _Replicas.on(placement, int(broker))
        for index in np.argsort(-here.weight.max(axis=1), kind="stable"):
            targets = np.flatnonzero(placement.permitted(here.partitions[[index]], here.columns[[index]])[0])
            if not targets.size:
                continue
            then = placement.load[targets] + here.weight[index]
            above = bounds.of(targets).excess(then) - bounds.of(targets).excess(placement.load[targets])
            best = targets[np.lexsort((held[targets], then.max(axis=1), above))[0]]
            held[best] += 1
            placement.put(*here.moved(placement, int(index), int(best)))


def relieve(placement: Placement, bounds: Bounds) -> None:
    """Change leaders, then move replicas, until no broker is above its limits or no single change helps."""
    for changes_from in (_leader_change, _change):
        while _relieved(placement, bounds, changes_from):
            pass


def _relieved(placement: Placement, bounds: Bounds, changes_from: _ChangesFrom) -> bool:
    """Change what relieves the broker furthest above its limits, again and again; whether anything did.

    A broker that no change relieves is left out.
    """
    helped, stuck = False, np.zeros(len(placement.load), np.bool_)
    while True:
        excess = np.where(stuck, 0.0, bounds.excess(placement.load))
        broker = int(excess.argmax())
        if excess[broker] <= LEAST:
            return helped
        changes = changes_from(placement, bounds, broker)
        for change in changes:
            placement.put(*change)
        stuck[broker] = not changes
        helped = helped or bool(changes)


def _change(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    return (
        _leader_change(placement, bounds, broker)
        or _moves(placement, bounds, broker)
        or _swap(placement, bounds, broker)
    )


def _leader_change(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The leader on this broker that another replica should take over."""
    replicas, load = placement.replicas, placement.load
    here = bounds.of(broker)
    led = np.flatnonzero(replicas[:, 0] == broker)
    extra = placement.leader[led] - placement.follower[led]
    there = replicas[led, 1:]
    left = here.excess(load[broker] - extra) - here.excess(load[broker])
    came = bounds.of(there).excess(load[there] + extra[:, None]) - bounds.excess(load)[there]
    change = np.where(there == NONE, 0.0, left[:, None] + came)
    if not change.size or change.min() > -LEAST:
        return []
    index, column = np.unravel_index(change.argmin(), change.shape)
    row = replicas[led[index]].copy()
    row[[0, column + 1]] = row[[column + 1, 0]]
    return [_Change(int(led[index]), row)]


def _moves(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The replicas on this broker that should move: those that relieve most for their bytes."""
    every = _Replicas.on(placement, broker)
    own = bounds.of(broker)
    left = own.excess(placement.load[broker]) - own.excess(placement.load[broker] - every.weight)
    few = every.few(placement, left)
    return _moves_of(few, placement, bounds, broker) or (
        _moves_of(every, placement, bounds, broker) if len(few.columns) < len(every.columns) else []
    )


def _moves_of(here: _Replicas, placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The moves of these, until a part of what the broker has above its limits is gone."""
    own, load, above = bounds.of(broker), placement.load.copy(), bounds.excess(placement.load)
    permitted = placement.permitted(here.partitions, here.columns)
    moved = here.moved_bytes(placement, broker)

    def gain(rows: slice) -> Floats:
        weight = here.weight[rows]
        left = above[broker] - own.excess(load[broker] - weight)
        came = bounds.excess(load + weight[:, None]) - above
        return np.where(permitted[rows], left[:, None] - came, 0.0)

    gains = gain(slice(None))
    if not gains.size or gains.max() < LEAST:
        return []
    a_byte = _a_byte(gains, moved).max(axis=1)
    useful = np.flatnonzero(a_byte)
    alike = np.floor(np.log(a_byte[useful] / a_byte.max()) / np.log(_ALIKE))
    changes: list[_Change] = []
    enough = (1.0 - _AT_ONCE) * above[broker]
    for index in useful[np.lexsort((-gains[useful].max(axis=1), alike))].tolist():
        row = slice(index, index + 1)
        now = gain(row)
        best = _cheapest(now, moved[row])
        if best is None or _a_byte(now, moved[row]).max() < _ALIKE * a_byte[index]:
            continue
        changes.append(here.moved(placement, index, best[1]))
        load[broker] -= here.weight[index]
        load[best[1]] += here.weight[index]
        above = bounds.excess(load)
        if above[broker] <= enough:
            break
    return changes


def _swap(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The replica on this broker, and the one on another, that should change places."""
    load = placement.load
    excess = bounds.excess(load)
    here = _Replicas.on(placement, broker)
    go, bytes_here = placement.permitted(here.partitions, here.columns), here.moved_bytes(placement, broker)
    found: list[tuple[float, list[_Change]]] = []
    for other in np.argsort(load.max(axis=1), kind="stable")[:_PARTNERS].tolist():
        if other == broker:
            continue
        there = _Replicas.on(placement, other)
        come = placement.permitted(there.partitions, there.columns)[:, broker]
        change = here.weight[:, None] - there.weight
        then = bounds.of(broker).excess(load[broker] - change) + bounds.of(other).excess(load[other] + change)
        gain = excess[broker] + excess[other] - then
        permitted = go[:, other][:, None] & come
        moved = bytes_here[:, other][:, None] + there.moved_bytes(placement, other)[:, broker]
        best = _cheapest(np.where(permitted, gain, 0.0), moved)
        if best is not None:
            changes = [here.moved(placement, best[0], other), there.moved(placement, best[1], broker)]
            found.append((float(gain[best] / max(moved[best], LEAST)), changes))
    return max(found, key=itemgetter(0))[1] if found else []


def _cheapest(gain: Floats, moved_bytes: Floats) -> tuple[int, int] | None:
    """Where the gain is largest for the bytes that move; None if there is no gain."""
    if not gain.size or gain.max() < LEAST:
        return None
    a_byte = _a_byte(gain, moved_bytes)
    alike = a_byte >= _ALIKE * a_byte.max()
    row, column = np.unravel_index(np.where(alike, gain, 0.0).argmax(), gain.shape)
    return int(row), int(column)


def _a_byte(gain: Floats, moved_bytes: Floats) -> Floats:
    return np.where(gain < LEAST, 0.0, gain / np.maximum(moved_bytes, LEAST))


class _Replicas(NamedTuple):
    """The replicas on one broker."""

    partitions: Rows
    columns: Rows
    weight: Floats

    @classmethod
    def on(cls, placement: Placement, broker: int) -> _Replicas:
        # faster than the nonzero places of two dimensions
        partitions, columns = np.divmod(np.flatnonzero(placement.replicas == broker), placement.replicas.shape[1])
        return cls(partitions, columns, placement.weight(partitions, columns))

    def few(self, placement: Placement, relief: Floats) -> _Replicas:
        """Those that relieve the broker most for their bytes, wherever they go."""
        a_byte = relief / np.maximum(placement.size[self.partitions], LEAST)
        alike = a_byte >= _ALIKE * a_byte.max(initial=0.0)
        first = np.lexsort((-np.where(alike, relief, a_byte), ~alike))[:_FEW]
        return _Replicas(self.partitions[first], self.columns[first], self.weight[first])

    def moved_bytes(self, placement: Placement, broker: int) -> Floats:
        """How many more bytes move in total if a replica goes to each broker: fewer if it returns."""
        before = placement.before[self.partitions]
        returns = (before[:, :, None] == np.arange(len(placement.load))).any(axis=1)
        came = ~(before == broker).any(axis=1)
        moved: Floats = placement.size[self.partitions][:, None] * (1.0 - returns - came[:, None])
        return moved

    def moved(self, placement: Placement, index: int, target: int) -> _Change:
        """One of them on another broker."""
        row = placement.replicas[self.partitions[index]].copy()
        row[self.columns[index]] = target
        return _Change(int(self.partitions[index]), row)
