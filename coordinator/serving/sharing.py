"""Who pays when peers together reach a limit of the server.

Bytes: the holder with the most byte-seconds in its present request or answer, so that an honest peer, whose requests
are soon complete and answered, does not pay for those that are larger or slower. A holder that stands still pays before
one that goes on, so that many small holders do not drive out an honest large one.

Connections: the least recently active ones of the user or host with the most connections. Strangers, whose login or
first request is not complete, have half of the places at most.

Each search sorts everyone, so it makes more room than is needed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import Generic, Protocol, TypeVar

STANDSTILL_S = 1.0
"""A holder stands still if what it holds has not changed by `_PROGRESS` for longer than this."""
_PROGRESS = 256
"""One part in 256 is progress: less than the 1/120 a second of a request that is complete after 120 seconds."""
_LEAST_AGE_S = 1.0
"""Every age is higher by this, so that a few small holders do not pay for one that fills the limit alone."""
_TOLERATED = 8
"""Holders that stand still pay first once they hold more than one part in eight of the limit."""
_EXTRA_BYTES = 64
"""They pay until one part in 64 of the limit is free."""
_EXTRA_SEATS = 100
"""One seat in 100 is cleared together."""

H = TypeVar("H", bound=Hashable)


@dataclass(slots=True)
class _Held:
    size_bytes: int
    changed_bytes: int
    """The size at the last progress."""
    changed_at_s: float
    since_s: float

    def stands_still(self, now_s: float) -> bool:
        return now_s - self.changed_at_s > STANDSTILL_S

    def cost(self, now_s: float) -> tuple[float, int]:
        """Return its byte-seconds; sizes decide between equal ones."""
        return self.size_bytes * (now_s - self.since_s + _LEAST_AGE_S), self.size_bytes


class SharedBytes(Generic[H]):
    """Bytes that holders share under one limit.

    As long as the holders that go on hold at most seven eighths of the limit, none of them pays.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.total_bytes = 0
        self._held: dict[H, _Held] = {}

    @property
    def holders(self) -> Collection[H]:
        """Return everyone who holds bytes."""
        return self._held.keys()

    def size_of(self, holder: H) -> int:
        """Return how many bytes someone holds."""
        held = self._held.get(holder)
        return 0 if held is None else held.size_bytes

    def hold(self, holder: H, size_bytes: int, now_s: float, since_s: float) -> None:
        """Note how many bytes someone holds from now on, and since when they have been the same request's."""
        if not size_bytes:
            self.drop(holder)
            return
        held = self._held.get(holder)
        self.total_bytes += size_bytes - (0 if held is None else held.size_bytes)
        if held is None:
            self._held[holder] = _Held(size_bytes, size_bytes, now_s, since_s)
        else:
            held.size_bytes, held.since_s = size_bytes, since_s
            if abs(size_bytes - held.changed_bytes) * _PROGRESS >= held.changed_bytes:
                held.changed_bytes, held.changed_at_s = size_bytes, now_s

    def drop(self, holder: H) -> None:
        """Note that someone holds nothing any more."""
        held = self._held.pop(holder, None)
        self.total_bytes -= 0 if held is None else held.size_bytes

    def take_payers(self, now_s: float) -> Iterator[tuple[H, int]]:
        """Remove those who pay until the rest is within the limit, and yield each with its size."""
        if self.total_bytes <= self.most_bytes:
            return
        costliest_first = sorted(self._held.items(), key=lambda each: each[1].cost(now_s), reverse=True)
        still = [(holder, held.size_bytes) for holder, held in costliest_first if held.stands_still(now_s)]
        still_bytes = sum(size_bytes for _, size_bytes in still)
        enough_bytes = self.most_bytes - self.most_bytes // _EXTRA_BYTES
        for holder, size_bytes in still:
            if self.total_bytes <= enough_bytes or still_bytes * _TOLERATED <= self.most_bytes:
                break
            still_bytes -= size_bytes
            self.drop(holder)
            yield holder, size_bytes
        for holder, held in costliest_first:
            if self.total_bytes <= self.most_bytes:
                break
            if holder in self._held:
                self.drop(holder)
                yield holder, held.size_bytes


class Seat(Protocol):
    """The place of one connection."""

    @property
    def is_stranger(self) -> bool:
        """Whether its peer has not completed its login or its first request yet."""

    @property
    def owner(self) -> Hashable:
        """The user or the host that it belongs to."""

    @property
    def active_at_s(self) -> float:
        """When its peer was last active; of a stranger, when it connected."""


S = TypeVar("S", bound=Seat)


def make_room(seats: Collection[S], most: int) -> tuple[Sequence[S], int]:
    """Return who must leave, and how many may come before the next search.

    At most ``most`` seats may be taken, and half of them by strangers. ``seats`` are sorted by age, oldest first.
    """
    strangers = [seat for seat in seats if seat.is_stranger]
    most_strangers = (most + 1) // 2
    leaving: Sequence[S] = ()
    if len(strangers) > most_strangers:
        leaving = _least_active(strangers, most_strangers)
    elif len(seats) > most:
        leaving = _least_active(seats, most)
    places = most - len(seats) + len(leaving)
    return leaving, min(places, most_strangers - len(strangers) + sum(seat.is_stranger for seat in leaving))


def _least_active(seats: Collection[S], most: int) -> Sequence[S]:
    """Return those of the user or host with the most seats, then of the others, until there is room."""
    numbers = Counter(seat.owner for seat in seats)
    number = len(seats) - most + most // _EXTRA_SEATS
    return nsmallest(number, seats, key=lambda seat: (-numbers[seat.owner], seat.active_at_s))
