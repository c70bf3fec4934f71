"""Keep Kafka connections in a Python process of Spark from one query or task to the next.

PySpark runs many tasks in one process, one after the other (``spark.python.worker.reuse``). Connecting, logging in and
looking up leaders takes longer than reading a few records. Spark kills a process that is idle for a minute. Spark's own
Kafka source also keeps consumers in its executors (``KafkaDataConsumer``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
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

    close: Callable[[T], object]
    """Closes an object that is no longer kept."""
    _free: dict[Hashable, T] = field(default_factory=dict)
    """The longest unused come first."""

    def take(self, made_from: Hashable) -> T | None:
        """Return an object with the same key, if there is one."""
        return self._free.pop(made_from, None)

    def give(self, made_from: Hashable, value: T) -> None:
        """Keep an object for the next user, or close it if the process will not be reused."""
        ended = [value]
        if os.environ.get(REUSED):
            ended = [self._free.pop(made_from)] if made_from in self._free else []
            self._free[made_from] = value
            if len(self._free) > MOST:
                ended.append(self._free.pop(next(iter(self._free))))
        for each in ended:
            self.close(each)

    def clear(self) -> None:
        """Close all kept objects."""
        while self._free:
            self.close(self._free.popitem()[1])
