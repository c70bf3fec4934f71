"""What a producer sees of each broker itself: how long acknowledgements take, and which batches wait for one.

Pure: times come in as arguments, in seconds of one clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PATIENCE_S = 1.0
"""A broker is silent if it acknowledges nothing for this long although a batch waits..."""
PATIENCE_TIMES = 8.0
"""... and for this many times the mean of the others, so that a cluster that is slow as a whole stays in use."""


@dataclass(slots=True, eq=False)
class _Seen:
    """One broker."""

    waiting: int = 0
    """Batches, or records, that it has not acknowledged yet."""
    heard_at_s: float = 0.0
    """When it acknowledged last, or when the first of those that wait was sent."""
    failed: bool = False
    """Whether the last batch failed."""
    mean_s: float | None = None
    """The mean time to acknowledgement, up to the lease before."""
    lease_s: float = 0.0
    """The sum of the times in this lease."""
    lease_count: int = 0
    lease_byte_s: float = 0.0
    """The sum of bytes times their time to acknowledgement."""
    idle: bool = False
    """Whether it acknowledged nothing in the lease before."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was seen in a lease, by broker."""

    latency_s: Mapping[int, float]
    in_flight_bytes: Mapping[int, float]


class Acknowledgements:
    """The acknowledgements of one producer, by broker."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._since_s = 0.0

    def sent(self, node: int, now_s: float) -> None:
        """A batch for this broker was begun."""
        seen = self._of(node)
        if not seen.waiting:
            seen.heard_at_s = now_s
        seen.waiting += 1

    def acknowledged(self, node: int, took_s: float | None, size: int, now_s: float) -> None:
        """The broker acknowledged a batch of this size, this long after it was begun; None: it was taken back."""
        seen = self._of(node)
        seen.waiting = max(seen.waiting - 1, 0)
        if took_s is None:
            return
        seen.heard_at_s = now_s
        seen.failed = False
        seen.lease_s += took_s
        seen.lease_count += 1
        seen.lease_byte_s += took_s * size

    def failed(self, node: int) -> None:
        """A batch failed or ran into its timeout. A broker that fails fast must not look like a fast one."""
        seen = self._of(node)
        seen.waiting = max(seen.waiting - 1, 0)
        seen.failed = True

    def refused(self, node: int, now_s: float) -> None:
        """The broker answered that it does not take a batch. That shows it alive, and not how fast it writes."""
        seen = self._of(node)
        seen.waiting = max(seen.waiting - 1, 0)
        seen.heard_at_s = now_s
        seen.failed = False

    def waiting(self, node: int) -> int:
        """Return the number of batches that the broker has not acknowledged yet."""
        seen = self._seen.get(node)
        return 0 if seen is None else seen.waiting

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
            age_s = now_s - seen.heard_at_s if seen.waiting else 0.0
            if seen.mean_s is not None or age_s:
                latency_s[node] = max(seen.mean_s or 0.0, age_s)
            # Little's law: what was in flight on average, where one look would see a moment.
            in_flight_bytes[node] = seen.lease_byte_s / max(now_s - self._since_s, 1e-9)
            seen.lease_s, seen.lease_count, seen.lease_byte_s = 0.0, 0, 0.0
        self._since_s = now_s
        return Measured(latency_s, in_flight_bytes if any(in_flight_bytes.values()) else {})

    def silent(self, nodes: Iterable[int], now_s: float) -> set[int]:
        """Return those of the brokers that do not answer; none if no broker answers, as the fault is then elsewhere."""
        nodes = list(nodes)
        means = sorted(seen.mean_s for node in nodes if (seen := self._seen.get(node)) and seen.mean_s is not None)
        patience_s = max(PATIENCE_S, PATIENCE_TIMES * means[len(means) // 2] if means else 0.0)
        found = {
            node
            for node in nodes
            if (seen := self._seen.get(node))
            and (seen.failed or (seen.waiting and now_s - seen.heard_at_s > patience_s))
        }
        return found if len(found) < len(nodes) else set()

    def unheard(self, nodes: Iterable[int]) -> set[int]:
        """Return those that acknowledged nothing in the last lease, or failed, and that no batch waits for."""
        return {
            node for node in nodes if (seen := self._seen.get(node)) and (seen.idle or seen.failed) and not seen.waiting
        }

    def _of(self, node: int) -> _Seen:
        seen = self._seen.get(node)
        if seen is None:
            seen = self._seen[node] = _Seen()
        return seen
