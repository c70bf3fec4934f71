"""Reads something in a thread of its own, so that no send and no rebalance waits for it."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

_log = logging.getLogger(__name__)

_PAUSE_TIMES = 100.0
"""The pause between readings is at least this many times their CPU time."""

T = TypeVar("T")


class Background(Generic[T]):
    """The newest value of ``read``, which a thread calls on request, and every ``interval_s`` seconds if that is given.

    A reading of None leaves the last value. The thread starts with the first request and ends when this object is no
    longer used.
    """

    def __init__(self, read: Callable[[], T | None], *, name: str, interval_s: float | None = None) -> None:
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
        self._begun = 0
        self._read_again = threading.Condition()

    def request(self) -> None:
        """Read at once, in the background."""
        self._wake.set()
        self.begin()

    def begin(self) -> None:
        """Start the thread, unless it runs; it reads at once."""
        with self._read_again:  # two threads may send their first records at once
            if self._thread is None:
                arguments = (weakref.ref(self), self._wake, self._ended, self._interval_s)
                self._thread = threading.Thread(target=_run, args=arguments, name=f"loadwise-{self._name}", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Read at once, and wait for it; return whether it ended in time."""
        awaited = self._begun + 1  # a reading that is under way may have missed what is new
        self.request()
        with self._read_again:
            return self._read_again.wait_for(lambda: self.readings >= awaited, timeout_s)

    def __del__(self) -> None:
        self._ended.set()
        self._wake.set()

    def read_once(self) -> None:
        """Read in this thread. A failure is logged when it begins, and the last value stays."""
        self._begun += 1
        try:
            value = self._read()
            if value is not None:
                self.newest = value
            self._failing = False
        except BaseException as error:  # noqa: BLE001 - the user's code; if the thread ended, none would read again
            if not self._failing:
                _log.warning("%s cannot be read; the last values are used until it can: %r", self._name, error)
            self._failing = True
        with self._read_again:
            self.readings += 1
            self._read_again.notify_all()


def _run(
    reader: weakref.ref[Background[T]], wake: threading.Event, ended: threading.Event, interval_s: float | None
) -> None:
    while not ended.is_set():
        wake.clear()
        this = reader()
        if this is None:
            return
        began_s = time.thread_time()
        this.read_once()
        del this  # so that it can be collected during the wait
        wake.wait(pause_s(interval_s, time.thread_time() - began_s))


def pause_s(interval_s: float | None, busy_s: float) -> float | None:
    """Return the pause after a reading that took this CPU time: metadata of many topics is read less often."""
    return None if interval_s is None else max(interval_s, _PAUSE_TIMES * busy_s)
