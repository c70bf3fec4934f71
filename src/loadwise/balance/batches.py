"""A plan as batches, each of which Kafka can execute at once without a disk that fills up. Pure.

A new replica fills its broker's disk from the start, and the old one is deleted when the batch is complete. So in a
batch no broker gets more than the headroom leaves free at its start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from loadwise.balance.cluster import Cluster, Partition

MOVES_PER_BROKER = 10
"""Partitions that move from or to a broker at a time, as Cruise Control's."""
_EXACT = 12
"""Up to this many blocked partitions, every order is tried."""
_ORDERS = 20
"""Of more, this many orders are tried."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Reassignments that are executed together, and the elections after them."""

    reassigned: tuple[Partition, ...]
    """As planned."""
    elected: tuple[Partition, ...] = ()
    """As planned: those that get another leader."""
    moved_bytes: float = 0.0
    busiest_bytes: float = 0.0
    """The most that one broker sends or receives."""

    def estimated_s(self, throttle_bytes_per_s: float) -> float:
        """How long the batch takes if brokers copy as fast as the throttle lets them."""
        return self.busiest_bytes / throttle_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked:
    """A partition that cannot move in any order that was found."""

    partition: Partition
    """As planned."""
    broker: int
    """The broker that has no space for it."""
    held_bytes: float
    """What its disk holds by then."""
    headroom_bytes: float
    """What its disk may hold."""

    @property
    def missing_bytes(self) -> float:
        """The space that would do."""
        return self.held_bytes + self.partition.size_bytes - self.headroom_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The batches in order, and the partitions that are in none because their disks have no space."""

    batches: tuple[Batch, ...]
    blocked: tuple[Blocked, ...] = ()


@dataclass(frozen=True, slots=True)
class _Move:
    """A partition with replicas that arrive on brokers, and replicas that leave."""

    planned: Partition
    arrive: frozenset[int]
    leave: frozenset[int]
    sender: int

    @property
    def brokers(self) -> frozenset[int]:
        return self.arrive | self.leave | {self.sender}

    @property
    def size_bytes(self) -> float:
        return self.planned.size_bytes


def schedule(
    cluster: Cluster, planned: Cluster, *, headroom: float, moves_per_broker: int = MOVES_PER_BROKER
) -> Schedule:
    """Put the changes of a plan into batches: first what moves no bytes, then what empties the fullest disks."""
    pairs = list(zip(cluster.partitions, planned.partitions, strict=True))
    elected = {now.name for before, now in pairs if before.leader != now.leader}
    in_place = tuple(
        now for before, now in pairs if before.replicas != now.replicas and set(before.replicas) == set(now.replicas)
    )
    at_once = tuple(now for before, now in pairs if now.name in elected and set(before.replicas) == set(now.replicas))
    first = [Batch(reassigned=in_place, elected=at_once)] if in_place or at_once else []
    disks = _Disks(cluster, headroom)
    moves = [_move(before, now) for before, now in pairs if set(before.replicas) != set(now.replicas)]
    order, blocked = _ordered(moves, disks)
    batches = [_batch(each, elected) for each in _grouped(order, disks, moves_per_broker)]
    for move in order:
        disks.arrive(move)
        disks.leave(move)
    return Schedule(batches=(*first, *batches), blocked=tuple(disks.blocked(move) for move in blocked))


class _Disks:
    """What disks hold, and may hold while a batch runs."""

    def __init__(self, cluster: Cluster, headroom: float) -> None:
        self._held: dict[int, float] = defaultdict(float)
        self._most = {broker.id: headroom * broker.capacity.disk_bytes for broker in cluster.brokers}
        for partition in cluster.partitions:
            for broker in partition.replicas:
                self._held[broker] += partition.size_bytes

    def copy(self) -> _Disks:
        copied = object.__new__(_Disks)
        copied._held, copied._most = defaultdict(float, self._held), self._most
        return copied

    def fullness(self, broker: int) -> float:
        """How much more the disk holds than it may."""
        return self._held[broker] - self._most[broker]

    def has_space(self, move: _Move) -> bool:
        if move.size_bytes <= 0.0:
            return True
        return all(
            self._held[broker] + move.size_bytes <= self._most[broker] * (1.0 + _ROUNDING) for broker in move.arrive
        )

    def arrive(self, move: _Move) -> None:
        for broker in move.arrive:
            self._held[broker] += move.size_bytes

    def leave(self, move: _Move) -> None:
        for broker in move.leave:
            self._held[broker] -= move.size_bytes

    def blocked(self, move: _Move) -> Blocked:
        """Why the move is blocked: by the broker that lacks most."""
        broker = max(sorted(move.arrive), key=self.fullness)
        return Blocked(
            partition=move.planned, broker=broker, held_bytes=self._held[broker], headroom_bytes=self._most[broker]
        )


def _move(before: Partition, planned: Partition) -> _Move:
    was, then = frozenset(before.replicas), frozenset(planned.replicas)
    return _Move(planned, then - was, was - then, before.leader)


def _ordered(moves: Sequence[_Move], disks: _Disks) -> tuple[list[_Move], list[_Move]]:
    """The moves in an order in which each has space, and those that have none in it. Few orders are tried if it works.

    Moves from the fullest disks come first, and of these the largest.
    """
    preferred = sorted(
        moves,
        key=lambda move: (max(map(disks.fullness, move.leave), default=-np.inf) <= 0.0, -move.size_bytes),
    )
    best = _possible(preferred, disks)
    if best[1] and len(moves) <= _EXACT:
        return _any_order(preferred, disks)
    random = np.random.default_rng(0)
    smallest = sorted(moves, key=lambda move: move.size_bytes)
    for attempt in range(_ORDERS):
        if not best[1]:
            break
        order = [smallest[index] for index in random.permutation(len(moves))] if attempt else smallest
        best = min(best, _possible(order, disks), key=lambda each: sum(move.size_bytes for move in each[1]))
    return best


def _possible(moves: Iterable[_Move], disks: _Disks) -> tuple[list[_Move], list[_Move]]:
    """The moves that have space one after another, and those that have none in the end."""
    disks, done, waiting = disks.copy(), [], list(moves)
    progress = True
    while progress and waiting:
        later = []
        for move in waiting:
            if disks.has_space(move):
                disks.arrive(move)
                disks.leave(move)
                done.append(move)
            else:
                later.append(move)
        progress, waiting = len(later) < len(waiting), later
    return done, waiting


def _any_order(moves: Sequence[_Move], disks: _Disks) -> tuple[list[_Move], list[_Move]]:
    """The same of any order: the one that leaves the fewest bytes. What disks hold is the same for the same moves."""
    reached: dict[int, tuple[int, ...]] = {0: ()}
    unseen = [0]
    while unseen:
        made = unseen.pop()
        now = disks.copy()
        for index in reached[made]:
            now.arrive(moves[index])
            now.leave(moves[index])
        for index, move in enumerate(moves):
            then = made | 1 << index
            if then not in reached and now.has_space(move):
                reached[then] = (*reached[made], index)
                unseen.append(then)
    best = max(reached.values(), key=lambda order: (sum(moves[index].size_bytes for index in order), len(order)))
    return [moves[index] for index in best], [move for index, move in enumerate(moves) if index not in best]


def _grouped(order: Sequence[_Move], disks: _Disks, moves_per_broker: int) -> list[list[_Move]]:
    """The moves in batches: each has space, whatever the others of its batch have copied by then.

    A move may come before earlier ones of the order only if all of those still have space.
    """
    disks, batches, waiting = disks.copy(), [], list(order)
    while waiting:
        filling, busy = disks.copy(), Counter[int]()
        batch: list[_Move] = []
        later: list[_Move] = []
        reserved: set[int] = set()
        for move in waiting:
            fits = (
                not (move.arrive & reserved)
                and all(busy[broker] < moves_per_broker for broker in move.brokers)
                and filling.has_space(move)
            )
            if fits:
                filling.arrive(move)
                busy.update(move.brokers)
                batch.append(move)
            else:
                later.append(move)
                reserved |= move.arrive  # the order has its space there
        for move in batch:
            disks.arrive(move)
            disks.leave(move)
        batches.append(batch)
        waiting = later
    return batches


def _batch(moves: Sequence[_Move], elected: set[str]) -> Batch:
    received: dict[int, float] = defaultdict(float)
    sent: dict[int, float] = defaultdict(float)
    for move in moves:
        for broker in move.arrive:
            received[broker] += move.size_bytes
        sent[move.sender] += len(move.arrive) * move.size_bytes
    return Batch(
        reassigned=tuple(move.planned for move in moves),
        elected=tuple(move.planned for move in moves if move.planned.name in elected),
        moved_bytes=sum(len(move.arrive) * move.size_bytes for move in moves),
        busiest_bytes=max([*received.values(), *sent.values()], default=0.0),
    )
