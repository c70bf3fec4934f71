"""Reads something again and again in a thread of its own, so that no send waits for it."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Background(Generic[T]):
    """The newest value of ``read``, which a thread calls every ``interval_s`` seconds.

    The thread starts with `start` and ends when this object is closed or no longer used.
    """

    def __init__(self, read: Callable[[], T], *, interval_s: float, name: str) -> None:
        self.newest: T | None = None
        """The last value that was read; None before the first."""
        self._read = read
        self._interval_s = interval_s
        self._name = name
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def start(self) -> None:
        """Begin to read, or read at once."""
        self._wake.set()
        if self._thread is None:
            arguments = (weakref.ref(self), self._wake, self._ended, self._interval_s)
            self._thread = threading.Thread(target=_run, args=arguments, name=f"loadwise-{self._name}", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread; a read that has begun is not waited for."""
        self._ended.set()
        self._wake.set()

    def __del__(self) -> None:
        self.close()

    def read_once(self) -> None:
        """Read now, in this thread. A failure is logged when it begins, and the last value stays."""
        try:
            self.newest = self._read()
            self._failing = False
        except Exception as error:  # noqa: BLE001 - a network, or the user's code; the next reading tries again
            if not self._failing:
                _log.warning("%s cannot be read; the last values are used until it can: %r", self._name, error)
            self._failing = True


def _run(reader: weakref.ref[Background[T]], wake: threading.Event, ended: threading.Event, interval_s: float) -> None:
    while not ended.is_set():
        wake.clear()
        this = reader()
        if this is None:
            return
        this.read_once()
        del this  # so that it can be collected during the wait
        wake.wait(interval_s)
