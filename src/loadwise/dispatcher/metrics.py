"""What a dispatcher may weigh brokers by, besides what the producer sees itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Loads: TypeAlias = Mapping[int, float]
"""The load of brokers by node id: finite, 0 or more, in any unit; only their ratio matters."""

Metric: TypeAlias = Loads | Callable[[], Loads | None]
"""Fixed loads, or a function that returns the newest ones at once; None while there are none."""

LATENCY = "latency"
"""The producer's own metric: mean time from send to acknowledgement."""
IN_FLIGHT = "in_flight"
"""The producer's own metric: bytes that are not acknowledged yet."""
