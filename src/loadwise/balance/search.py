"""Looks for a placement of replicas within limits. Pure."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from loadwise.balance.bounds import LEAST, Bounds
from loadwise.balance.placement import Placement, Replicas
from loadwise.balance.rows import NONE, Floats, Mask, Rows

_ALIKE = 0.9
"""Of moves that gain nearly as much a byte, the one that gains most is taken: fewer replicas move."""
_AT_ONCE = 0.2
"""Of what a broker has outside of its bounds: then comes the broker that is furthest outside by now."""
_FEW = 100
"""Replicas of a broker: more are tried only if none of those that promise most can move."""
_TARGETS, _IN_RACK = 48, 8
"""Brokers that replicas are moved to: the least loaded ones, in all and of each rack."""
_DONORS = 16
"""Brokers whose replicas are moved at a time to one that carries too little."""
_PARTNERS = 8
"""Replicas are exchanged with those of so many brokers, the least loaded ones."""
_USEFUL = 0.05
"""Of what a broker has outside of its bounds: an exchange that takes less is not made."""
_MISSES = 16
"""Of replicas that promise most: once so many in a row help less than before the others moved, the rest is left."""
_EXCHANGED = 128
"""Replicas of each broker that are tried for an exchange, spread over all weights."""


class _Change(NamedTuple):
    partition: int
    replicas: Rows


_ChangesFrom: TypeAlias = Callable[[Placement, Bounds, int], list[_Change]]


def relieve(placement: Placement, bounds: Bounds) -> None:
    """Change leaders, then move replicas, until no broker is outside of its bounds or no single change helps."""
    for changes_from in (_leader_changes, _changes):
        while _relieved(placement, bounds, changes_from):
            pass


def _relieved(placement: Placement, bounds: Bounds, changes_from: _ChangesFrom) -> bool:
    """Change what helps the broker furthest outside of its bounds, again and again; whether anything did.

    A broker that no change helps is left out.
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


def _changes(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    return (
        _leader_changes(placement, bounds, broker)
        or _moves(placement, bounds, broker)
        or _arrivals(placement, bounds, broker)
        or _swap(placement, bounds, broker)
    )


def _leader_changes(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The leaders on this broker that other replicas should take over, or those that it should take over."""
    held = placement.on(broker).partitions
    if not held.size:
        return []
    rows = placement.replicas[held]
    extra = placement.leader[held] - placement.follower[held]
    leads = rows[:, 0] == broker
    partitions, columns = [], []
    if leads.any():
        width = rows.shape[1] - 1
        partitions.append(np.repeat(np.flatnonzero(leads), width))
        columns.append(np.tile(np.arange(1, width + 1), int(leads.sum())))
    follows = np.flatnonzero(~leads)
    partitions.append(follows)
    columns.append((rows[follows] == broker).argmax(axis=1))
    index, column = np.concatenate(partitions), np.concatenate(columns)
    source, target = rows[index, 0], rows[index, column]
    possible = (target != NONE) & ~placement.closed[target] & ~placement.excluded[source]
    index, column, source, target = index[possible], column[possible], source[possible], target[possible]
    weight, excess = extra[index], bounds.excess(placement.load)
    left = excess[source] - bounds.of(source).excess(placement.load[source] - weight)
    gains = left - (bounds.of(target).excess(placement.load[target] + weight) - excess[target])
    load, excess_of = _Loads(placement), bounds.of_one()

    def gain(best: int) -> float:
        from_, to, carried = int(source[best]), int(target[best]), weight[best].tolist()
        here, there = load[from_], load[to]
        left = excess_of(from_, here) - excess_of(from_, _plus(here, carried, -1.0))
        return left - (excess_of(to, _plus(there, carried, 1.0)) - excess_of(to, there))

    enough = (1.0 - _AT_ONCE) * float(excess[broker])
    changes: list[_Change] = []
    changed: set[int] = set()
    misses = 0
    for best in np.argsort(-gains, kind="stable").tolist():
        if gains[best] < LEAST or misses > _MISSES:
            break
        row = int(index[best])
        if row in changed or (changes and gain(best) < _ALIKE * gains[best]):
            misses += 1
            continue
        misses = 0
        changed.add(row)
        for at, sign in ((int(source[best]), -1.0), (int(target[best]), 1.0)):
            load[at] = _plus(load[at], weight[best].tolist(), sign)
        replicas = rows[row].copy()
        replicas[[0, column[best]]] = replicas[[column[best], 0]]
        changes.append(_Change(int(held[row]), replicas))
        if excess_of(broker, load[broker]) <= enough:
            break
    return changes


def _moves(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The replicas on this broker that should move: those that relieve most for their bytes."""
    every = _Replicas.on(placement, broker)
    own = bounds.of(broker)
    left = own.excess(placement.load[broker]) - own.excess(placement.load[broker] - every.weight)
    every = every.only(left > LEAST)
    if not every.columns.size:
        return []
    few = every.few(placement, left[left > LEAST])
    targets = _least_loaded(placement, bounds)
    return _moves_of(few, placement, bounds, broker, targets) or (
        _moves_of(every, placement, bounds, broker, targets) if len(few.columns) < len(every.columns) else []
    )


def _least_loaded(placement: Placement, bounds: Bounds) -> Rows:
    """The brokers that can take most: of all, and of each rack."""
    used = (placement.load / np.maximum(bounds.limit, LEAST)).max(axis=1)
    open_to = np.flatnonzero(~placement.closed)
    order = open_to[np.argsort(used[open_to], kind="stable")]
    if len(order) <= _TARGETS:
        return np.sort(order)
    racks = placement.rack[order]
    by_rack = np.argsort(racks, kind="stable")
    counts = np.bincount(racks)
    place = np.empty(len(order), np.intp)
    place[by_rack] = np.arange(len(order)) - (np.cumsum(counts) - counts)[racks[by_rack]]
    chosen = np.arange(len(order)) < _TARGETS
    if (counts > 0).sum() <= _TARGETS // _IN_RACK:
        chosen |= place < _IN_RACK
    return np.sort(order[chosen])


def _moves_of(here: _Replicas, placement: Placement, bounds: Bounds, broker: int, targets: Rows) -> list[_Change]:
    """The moves of these, until a part of what the broker has outside of its bounds is gone."""
    own, there = bounds.of(broker), bounds.of(targets)
    load, own_load = placement.load[targets], placement.load[broker].copy()
    above, own_above = there.excess(load), float(own.excess(own_load))
    permitted = placement.permitted(here.partitions, here.columns, targets)
    moved = here.moved_bytes(placement, broker, targets)

    def gain(rows: slice) -> Floats:
        weight = here.weight[rows]
        left = own_above - own.excess(own_load - weight)
        came = there.excess(load + weight[:, None]) - above
        return np.where(permitted[rows], left[:, None] - came, 0.0)

    gains = gain(slice(None))
    if not gains.size or gains.max() < LEAST:
        return []
    a_byte = _a_byte(gains, moved).max(axis=1)
    useful = np.flatnonzero(a_byte)
    alike = np.floor(np.log(a_byte[useful] / a_byte.max()) / np.log(_ALIKE))
    changes: list[_Change] = []
    enough = (1.0 - _AT_ONCE) * own_above
    for index in useful[np.lexsort((-gains[useful].max(axis=1), alike))].tolist():
        row = slice(index, index + 1)
        now = gain(row)
        best = _cheapest(now, moved[row])
        if best is None or _a_byte(now, moved[row]).max() < _ALIKE * a_byte[index]:
            continue
        at = best[1]
        changes.append(here.moved(placement, index, int(targets[at])))
        own_load -= here.weight[index]
        load[at] += here.weight[index]
        above[at] = there.of(at).excess(load[at])
        own_above = float(own.excess(own_load))
        if own_above <= enough:
            break
    return changes


def _arrivals(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The replicas on other brokers that should move to this one, which carries too little."""
    if bounds.lower is None or placement.closed[broker]:
        return []
    missing = np.maximum(bounds.lower[broker] - placement.load[broker], 0.0)
    if missing.sum() <= LEAST:
        return []
    spare = np.maximum(placement.load - bounds.lower, 0.0)[:, missing > LEAST].max(axis=1)
    spare[broker] = 0.0
    spare[placement.excluded] = 0.0
    donors = np.argsort(-spare, kind="stable")
    donors = donors[spare[donors] > LEAST]
    for first in range(0, len(donors), _DONORS):
        changes = _arrivals_from(donors[first : first + _DONORS].tolist(), placement, bounds, broker)
        if changes:
            return changes
    return []


def _arrivals_from(donors: list[int], placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    own = bounds.of(broker)
    load = placement.load.copy()
    every = [_Replicas.on(placement, donor) for donor in donors]
    source = np.repeat(np.array(donors, np.intp), [len(each.columns) for each in every])
    there = _Replicas(*(np.concatenate(column) for column in zip(*every, strict=True)))
    first_missing = float(own.excess(load[broker]))
    came = first_missing - own.excess(load[broker] + there.weight)
    useful = came > LEAST
    there, source = there.only(useful), source[useful]
    useful = placement.permitted(there.partitions, there.columns, np.array([broker]))[:, 0]
    there, source = there.only(useful), source[useful]
    if not source.size:
        return []
    before = placement.before[there.partitions]
    returns, arrived = (before == broker).any(axis=1), ~(before == source[:, None]).any(axis=1)
    moved = placement.size[there.partitions] * (1.0 - returns - arrived)

    def gain(some: Rows) -> Floats:
        weight, from_ = there.weight[some], source[some]
        at = bounds.of(from_)
        left = at.excess(load[from_]) - at.excess(load[from_] - weight)
        came: Floats = own.excess(load[broker]) - own.excess(load[broker] + weight)
        return left + came

    gains = gain(np.arange(len(source)))
    if gains.max() < LEAST:
        return []
    a_byte = _a_byte(gains, moved)
    useful_rows = np.flatnonzero(a_byte)
    alike = np.floor(np.log(a_byte[useful_rows] / a_byte.max()) / np.log(_ALIKE))
    changes: list[_Change] = []
    changed: set[int] = set()
    enough = (1.0 - _AT_ONCE) * first_missing
    misses = 0
    for index in useful_rows[np.lexsort((-gains[useful_rows], alike))].tolist():
        now = float(gain(np.array([index]))[0])
        if int(there.partitions[index]) in changed or now < max(LEAST, _ALIKE * gains[index]):
            misses += 1
            if misses > _MISSES:
                break
            continue
        misses = 0
        changed.add(int(there.partitions[index]))
        changes.append(there.moved(placement, index, broker))
        load[source[index]] -= there.weight[index]
        load[broker] += there.weight[index]
        if float(own.excess(load[broker])) <= enough:
            break
    return changes


def _swap(placement: Placement, bounds: Bounds, broker: int) -> list[_Change]:
    """The replica on this broker, and the one on another, that should change places."""
    if placement.closed[broker]:
        return []
    load = placement.load
    excess = bounds.excess(load)
    own = bounds.of(broker)
    outside = load[broker] - own.limit
    if own.lower is not None:
        outside = np.maximum(outside, own.lower - load[broker])
    resource = int(outside.argmax())
    every = _Replicas.on(placement, broker)
    found: list[tuple[float, list[_Change]]] = []
    order = np.argsort(load.max(axis=1) if outside[resource] > 0.0 else -load.max(axis=1), kind="stable")
    for other in order[~placement.closed[order] & (order != broker)][:_PARTNERS].tolist():
        here = every.only(placement.permitted(every.partitions, every.columns, np.array([other]))[:, 0])
        there = _Replicas.on(placement, other)
        there = there.only(placement.permitted(there.partitions, there.columns, np.array([broker]))[:, 0])
        if not here.columns.size or not there.columns.size:
            continue
        here, there = here.spread(resource), there.spread(resource)
        change = [mine[:, None] - theirs for mine, theirs in zip(here.weight.T, there.weight.T, strict=True)]
        then = own.excess_by([at - each for at, each in zip(load[broker].tolist(), change, strict=True)])
        then += bounds.of(other).excess_by([at + each for at, each in zip(load[other].tolist(), change, strict=True)])
        gain = excess[broker] + excess[other] - then
        moved = here.moved_bytes(placement, broker, np.array([other]))
        moved = moved + there.moved_bytes(placement, other, np.array([broker]))[:, 0]
        same = here.partitions[:, None] == there.partitions
        best = _cheapest(np.where(same | (gain < _USEFUL * excess[broker]), 0.0, gain), moved)
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


class _Loads(dict[int, list[float]]):
    """The load of each broker that is asked for, in plain floats."""

    def __init__(self, placement: Placement) -> None:
        super().__init__()
        self._placement = placement

    def __missing__(self, broker: int) -> list[float]:
        load: list[float] = self._placement.load[broker].tolist()
        self[broker] = load
        return load


def _plus(load: list[float], weight: list[float], sign: float) -> list[float]:
    return [carried + sign * each for carried, each in zip(load, weight, strict=True)]


class _Replicas(Replicas):
    """Replicas, most often those on one broker, to choose from."""

    @classmethod
    def on(cls, placement: Placement, broker: int) -> _Replicas:
        return cls(*placement.on(broker))

    def only(self, some: Mask | Rows) -> _Replicas:
        """Some of them."""
        return _Replicas(self.partitions[some], self.columns[some], self.weight[some])

    def few(self, placement: Placement, relief: Floats) -> _Replicas:
        """Those that relieve the broker most for their bytes, wherever they go."""
        a_byte = relief / np.maximum(placement.size[self.partitions], LEAST)
        alike = a_byte >= _ALIKE * a_byte.max(initial=0.0)
        return self.only(np.lexsort((-np.where(alike, relief, a_byte), ~alike))[:_FEW])

    def spread(self, resource: int) -> _Replicas:
        """A limited number of them, from the lightest to the heaviest."""
        if len(self.columns) <= _EXCHANGED:
            return self
        order = np.argsort(self.weight[:, resource], kind="stable")
        return self.only(np.sort(order[np.linspace(0, len(order) - 1, _EXCHANGED).astype(np.intp)]))

    def moved_bytes(self, placement: Placement, broker: int, targets: Rows) -> Floats:
        """How many more bytes move in total if a replica goes to each target: fewer if it returns."""
        before = placement.before[self.partitions]
        returns = np.zeros((len(self.partitions), len(targets)), np.bool_)
        for column in range(before.shape[1]):
            returns |= before[:, [column]] == targets
        came = ~(before == broker).any(axis=1)
        moved: Floats = placement.size[self.partitions][:, None] * (1.0 - returns - came[:, None])
        return moved

    def moved(self, placement: Placement, index: int, target: int) -> _Change:
        """One of them on another broker."""
        row = placement.replicas[self.partitions[index]].copy()
        row[self.columns[index]] = target
        return _Change(int(self.partitions[index]), row)
