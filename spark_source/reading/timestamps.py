"""Kafka's timestamps in ms as Spark's in µs, where they fit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from loadwise.spark_source.errors import START_BEHIND, BatchError

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_MOST_MS = ((1 << 63) - 1) // 1000
"""The year 294,247. Spark's own Kafka source fails behind it too, with "long overflow"."""


def microseconds(milliseconds: Numbers) -> Numbers:
    """The moments in µs since 1970. Raises `BatchError` for one that 64 bits cannot hold."""
    beyond = milliseconds[(milliseconds > _MOST_MS) | (milliseconds < -_MOST_MS)]
    if beyond.size:
        raise BatchError(
            f"a record there has the timestamp {beyond[0]} ms, which no timestamp of Spark's can be",
            f"leave out the column timestamp with .schema(…), or {START_BEHIND}",
        )
    return milliseconds * 1000
