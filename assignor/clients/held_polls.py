"""How long a poll waits for an eager rebalance, if its program commits by hand.

Between two polls a program may commit what it has processed. If an eager rebalance ends in between, that comes too
late: another member reads on from the last commit. So the poll that begins to join does not return before the join has
ended, within limits. kafka-python and confluent-kafka share this; aiokafka itself waits.
"""

from __future__ import annotations

import threading
from typing import Any

LONGEST_S = 10.0
"""The longest wait of a poll beyond its own timeout..."""
OF_REBALANCE_TIMEOUT = 1 / 30
"""... and its part of ``max.poll.interval.ms``, within which all members must join."""

_thread = threading.local()


def longest_wait_s(rebalance_timeout_ms: float) -> float:
    """Return for how many seconds a poll may wait for the other members."""
    return min(LONGEST_S, OF_REBALANCE_TIMEOUT * rebalance_timeout_ms / 1000)


def polled_alone(consumer: Any) -> bool:
    """Return whether the last poll of this thread was the same consumer's.

    A thread that polls several members must not wait in one of them, because the rebalance may wait for another.
    """
    before, _thread.consumer = getattr(_thread, "consumer", None), id(consumer)
    return before == id(consumer)
