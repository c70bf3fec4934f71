"""What a Python process of Spark's keeps from one query or task to the next: its connections to Kafka.

PySpark runs many tasks in one process, one after the other (``spark.python.worker.reuse``), and to connect, to log in
and to ask who leads what takes longer than to read a few records. A process that is idle for a minute is killed.
Spark's own Kafka source keeps consumers in its executors likewise (``KafkaDataConsumer``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

MOST = 4
"""So many are kept at most: a job seldom reads from more clusters by turns."""
REUSED = "SPARK_REUSE_WORKER"
"""What PySpark has in the environment of a process that others use after this one."""
FILES = ("ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")
"""The settings that name files, which are read when a connection is made."""

T = TypeVar("T")


def made_from(settings: Mapping[str, str]) -> Hashable:
    """What connections with these settings are made from: a certificate that was renewed on disk makes others."""
    files = []
    for name in FILES:
        if name in settings:
            with suppress(OSError):  # whoever connects tells that a file is not there
                found = os.stat(settings[name])
                files.append((name, found.st_ino, found.st_size, found.st_mtime_ns))
    return tuple(sorted(settings.items())), tuple(files)


@dataclass(slots=True)
class Kept(Generic[T]):
    """What is not in use just now, each with what it was made from. Whoever takes something has it alone."""

    close: Callable[[T], object]
    """Ends what is not kept any longer."""
    _free: dict[Hashable, T] = field(default_factory=dict)
    """The longest unused first."""

    def take(self, made_from: Hashable) -> T | None:
        """One that was made from the same, if there is any."""
        return self._free.pop(made_from, None)

    def give(self, made_from: Hashable, value: T) -> None:
        """Keep it for the next one, or end it where nobody will come."""
        ended = [value]
        if os.environ.get(REUSED):
            ended = [self._free.pop(made_from)] if made_from in self._free else []
            self._free[made_from] = value
            if len(self._free) > MOST:
                ended.append(self._free.pop(next(iter(self._free))))
        for each in ended:
            self.close(each)

    def clear(self) -> None:
        """End all that is kept."""
        while self._free:
            self.close(self._free.popitem()[1])
