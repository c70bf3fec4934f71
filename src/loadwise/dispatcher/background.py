"""Reads something in a thread of its own, so that no send waits for it."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


class Background(Generic[T]):
    """The newest value of ``read``, which a thread calls on request, and every ``interval_s`` seconds if that is given.

    The thread starts with the first request and ends when this object is no longer used.
    """

    def __init__(self, read: Callable[[], T], *, name: str, interval_s: float | None = None) -> None:
        self.newest: T | None = None
        """The last value that was read; None before the first."""
        self.readings = 0
        """How often it was read, or could not be."""
        self._read = read
        self._interval_s = interval_s
        self._name = name
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._failing = False

    def request(self) -> None:
        """Read at once, in the background."""
        self._wake.set()
        if self._thread is None:
            arguments = (weakref.ref(self), self._wake, self._ended, self._interval_s)
            self._thread = threading.Thread(target=_run, args=arguments, name=f"loadwise-{self._name}", daemon=True)
            self._thread.start()

    def __del__(self) -> None:
        self._ended.set()
        self._wake.set()

    def read_once(self) -> None:
        """Read in this thread. A failure is logged when it begins, and the last value stays."""
        try:
            self.newest = self._read()
            self._failing = False
        except Exception as error:  # noqa: BLE001 - a network, or the user's code; the next reading tries again
            if not self._failing:
                _log.warning("%s cannot be read; the last values are used until it can: %r", self._name, error)
            self._failing = True
        self.readings += 1


def _run(
    reader: weakref.ref[Background[T]], wake: threading.Event, ended: threading.Event, interval_s: float | None
) -> None:
    while not ended.is_set():
        wake.clear()
        this = reader()
        if this is None:
            return
        this.read_once()
        del this  # so that it can be collected during the wait
        wake.wait(interval_s)
