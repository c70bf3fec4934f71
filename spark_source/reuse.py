"""Keeps connections and modules of a Python process of Spark for later tasks (``spark.python.worker.reuse``).

Connections: connecting, logging in and looking up leaders takes longer than reading a few records. Spark kills a
process that is idle for a minute. Spark's own Kafka source keeps consumers too (``KafkaDataConsumer``).

Modules: PySpark collects garbage after each task and each plan. With PySpark, Arrow and this source loaded, that takes
37 ms of CPU, five times the cost of reading a few records.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Generic, TypeVar

MOST = 4
"""The maximum number to keep: a job seldom reads from more clusters."""
REUSED = "SPARK_REUSE_WORKER"
"""The environment variable that PySpark sets in a process that it reuses."""
FILES = ("ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
"""Settings that name files, which are read when a connection is made."""

T = TypeVar("T")


def made_from(settings: Mapping[str, str]) -> Hashable:
    """Return a key for connections with these settings: it changes when a certificate is renewed on disk."""
    files = []
    for name in FILES:
        if name in settings:
            with suppress(OSError):  # connecting reports a missing file
                found = os.stat(settings[name])
                files.append((name, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(sorted(settings.items())), tuple(files)


@dataclass(slots=True)
class Kept(Generic[T]):
    """Unused objects, each with its key. Taking one gives exclusive use."""

    _free: dict[Hashable, T] = field(default_factory=dict)
    """The longest unused come first."""

    def take(self, made_from: Hashable) -> T | None:
        """Return an object with the same key, if there is one."""
        return self._free.pop(made_from, None)

    def give(self, made_from: Hashable, value: T) -> list[T]:
        """Keep an object for the next user; return those to close, which may be all if the process is not reused."""
        if not os.environ.get(REUSED):
            return [value]
        ended = [self._free.pop(made_from)] if made_from in self._free else []
        self._free[made_from] = value
        return ended if len(self._free) <= MOST else [*ended, self._free.pop(next(iter(self._free)))]


@cache
def exclude_what_is_loaded() -> None:
    """Exclude all current objects, mostly modules, from later garbage collections. Only the first call has an effect.

    Current objects are still freed once they have no references (``gc.freeze``).
    """
    if os.environ.get(REUSED):
        gc.freeze()
