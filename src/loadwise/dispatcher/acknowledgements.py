"""What a producer sees of each broker itself: how long acknowledgements take, and which batches wait for one.

Pure: times come in as arguments, in seconds of one clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from loadwise.dispatcher.scores import outliers

PATIENCE_S = 0.1
"""A broker is silent if it acknowledges nothing for this long although a batch waits..."""
PATIENCE_TIMES = 8.0
"""... and for this many times the mean of the others, so that a cluster that is slow as a whole stays in use."""
FIRST_PATIENCE_S = 1.0
"""The patience before any broker has acknowledged a batch."""

_SMOOTHING = 1 / 8
"""The part that an acknowledgement has in the smoothed time, as in TCP (RFC 6298): one late batch is no slow broker."""


@dataclass(slots=True, eq=False)
class Batch:
    """A batch that is not acknowledged yet."""

    node: int
    due_s: float
    """When its linger time ends: until then it is open, and waits for records instead of the broker."""


@dataclass(slots=True, eq=False)
class _Seen:
    """One broker."""

    batches: dict[Batch, None] = field(default_factory=dict)
    """Those that it has not acknowledged yet, the oldest first."""
    open: dict[Batch, None] = field(default_factory=dict)
    """Those of them that may be open."""
    heard_at_s: float = -math.inf
    """When it acknowledged last."""
    connected: bool = False
    """Whether it has acknowledged a batch at all."""
    failed: bool = False
    """Whether the last batch failed."""
    mean_s: float | None = None
    """The mean time to acknowledgement, up to the lease before."""
    smoothed_s: float | None = None
    """The same, with the acknowledgements since."""
    lease_s: float = 0.0
    """The sum of the times in this lease."""
    lease_count: int = 0
    lease_byte_s: float = 0.0
    """The sum of bytes times their time to acknowledgement."""
    idle: bool = False
    """Whether it acknowledged nothing in the lease before."""

    def waiting(self, now_s: float) -> int:
        """Return the number of batches that wait for the broker."""
        while self.open and (oldest := next(iter(self.open))).due_s <= now_s:
            del self.open[oldest]
        return len(self.batches) - len(self.open)

    def age_s(self, now_s: float) -> float:
        """Return for how long the broker has acknowledged nothing while a batch waited for it."""
        if not self.waiting(now_s):
            return 0.0
        oldest = next(batch for batch in self.batches if batch not in self.open)
        return max(now_s - max(self.heard_at_s, oldest.due_s), 0.0)


_UNSEEN = _Seen()


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen in a lease, by broker."""

    latency_s: Mapping[int, float]
    in_flight_bytes: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Moment:
    """How brokers do at one moment."""

    waiting: Mapping[int, int]
    """How many batches wait for each."""
    slow: frozenset[int]
    """Those that take so much longer than the others that a few records are enough."""
    silent: frozenset[int]
    """Those that do not answer; none if no broker answers, as the fault is then elsewhere."""


class Acknowledgements:
    """The acknowledgements of one producer, by broker."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._since_s = 0.0

    def begun(self, node: int, now_s: float, linger_s: float = 0.0) -> Batch:
        """A batch for this broker was begun; it is sent after this time at the latest, if the broker takes it."""
        seen = self._seen.setdefault(node, _Seen())
        batch = Batch(node, now_s + linger_s)
        seen.batches[batch] = None
        seen.open[batch] = None
        return batch

    def close(self, batch: Batch, now_s: float) -> None:
        """The batch gets no more records."""
        still_open = self._seen[batch.node].open
        if batch in still_open:
            del still_open[batch]
            batch.due_s = min(batch.due_s, now_s)

    def acknowledged(self, batch: Batch, took_s: float | None, size: int, now_s: float) -> None:
        """The broker acknowledged a batch of this size, this long after it was begun; None: it was taken back."""
        seen = self._ended(batch)
        if took_s is None:
            return
        seen.heard_at_s = now_s
        seen.failed = False
        if not seen.connected:  # the first batch took the time to connect, too
            seen.connected = True
            return
        if seen.smoothed_s is None:
            known_s = [each.smoothed_s for each in self._seen.values() if each.smoothed_s is not None]
            seen.smoothed_s = min([took_s, *known_s])
        seen.smoothed_s += _SMOOTHING * (took_s - seen.smoothed_s)
        seen.lease_s += took_s
        seen.lease_count += 1
        seen.lease_byte_s += took_s * size

    def failed(self, batch: Batch) -> None:
        """A batch failed or ran into its timeout. A broker that fails fast must not look like a fast one."""
        self._ended(batch).failed = True

    def refused(self, batch: Batch, now_s: float) -> None:
        """The broker answered that it does not take a batch. That shows it alive, and not how fast it writes."""
        seen = self._ended(batch)
        seen.heard_at_s = now_s
        seen.failed = False

    def measure(self, now_s: float) -> Measured:
        """Return what was seen since the last call, and begin the next lease.

        A mean time rises at once, and falls to the geometric mean with the one before: a broker that was slow comes
        back in a few leases, without swinging to and fro. A batch that waits for longer counts with its age so far.
        """
        latency_s, in_flight_bytes = {}, {}
        for node, seen in self._seen.items():
            seen.idle = not seen.lease_count
            if seen.lease_count:
                new_s = seen.lease_s / seen.lease_count
                seen.mean_s = new_s if seen.mean_s is None else max(new_s, math.sqrt(seen.mean_s * new_s))
                seen.smoothed_s = seen.mean_s
            age_s = seen.age_s(now_s)
            if seen.mean_s is not None or age_s:
                latency_s[node] = max(seen.mean_s or 0.0, age_s)
            # Little's law: what was in flight on average, where one look would see a moment.
            in_flight_bytes[node] = seen.lease_byte_s / max(now_s - self._since_s, 1e-9)
            seen.lease_s, seen.lease_count, seen.lease_byte_s = 0.0, 0, 0.0
        self._since_s = now_s
        return Measured(latency_s, in_flight_bytes if any(in_flight_bytes.values()) else {})

    def moment(self, nodes: Iterable[int], now_s: float, *, by_latency: bool = True) -> Moment:
        """Return how these brokers do now; none is slow if latency does not count."""
        seen = {node: self._seen.get(node, _UNSEEN) for node in nodes}
        smoothed_s = {node: each.smoothed_s for node, each in seen.items() if each.smoothed_s is not None}
        patience_s = FIRST_PATIENCE_S
        if smoothed_s:
            patience_s = max(PATIENCE_S, PATIENCE_TIMES * sorted(smoothed_s.values())[len(smoothed_s) // 2])
        silent = frozenset(node for node, each in seen.items() if each.failed or each.age_s(now_s) > patience_s)
        return Moment(
            waiting={node: each.waiting(now_s) for node, each in seen.items()},
            slow=frozenset(outliers(smoothed_s)) if by_latency else frozenset(),
            silent=silent if len(silent) < len(seen) else frozenset(),
        )

    def unheard(self, nodes: Iterable[int]) -> set[int]:
        """Return those that acknowledged nothing in the last lease, or failed, and that no batch waits for."""
        return {
            node for node in nodes if (seen := self._seen.get(node)) and (seen.idle or seen.failed) and not seen.batches
        }

    def _ended(self, batch: Batch) -> _Seen:
        seen = self._seen[batch.node]
        seen.batches.pop(batch, None)
        seen.open.pop(batch, None)
        return seen
