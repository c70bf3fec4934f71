"""Limit what kafka-python logs for a hidden client to the first message of each problem.

A member without records or a lag reader logs messages that its user cannot act on, hundreds of times a second while a
broker is down. Problems that the user can act on are raised or reported elsewhere. kafka-python's clients share their
loggers; the thread identifies the client. The loggers are filtered as long as there are such threads.
"""

from __future__ import annotations

import logging
import math
from threading import Thread
from weakref import WeakKeyDictionary, finalize

QUIET_S = 60.0
"""A hidden client's warning or error is logged if it had none for this long."""


class _FirstOfATrouble(logging.Filter):
    """Passes a hidden client's message only after a quiet period; passes all other messages."""

    def __init__(self) -> None:
        super().__init__()
        self.last: WeakKeyDictionary[Thread, float] = WeakKeyDictionary()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        for thread, last in list(self.last.items()):
            if thread.ident == record.thread and thread.is_alive():  # numbers of dead threads are used again
                if _is_raised(record) or _is_of_the_loop(record):
                    return False
                self.last[thread] = max(last, record.created)
                return record.created - last >= QUIET_S
        return True


def _is_raised(record: logging.LogRecord) -> bool:
    """Return whether a message says what a hidden member's topics lack, which ``poll`` of its consumer reports."""
    return record.name == "kafka.cluster" and str(record.msg).startswith("Topic %s")


def _is_of_the_loop(record: logging.LogRecord) -> bool:
    """Return whether a warning is about kafka-python's own event loop, which repairs itself (``Selector got …``)."""
    return record.name == "kafka.net.selector" and record.levelno == logging.WARNING


_filter = _FirstOfATrouble()


def log_once(thread: Thread) -> None:
    """Let kafka-python log only the first warning or error of each problem of this thread's client."""
    _begin(thread, -math.inf)


def log_nothing(thread: Thread) -> None:
    """Suppress kafka-python's warnings and errors for this thread's client; the caller logs what it raises."""
    _begin(thread, math.inf)


def _begin(thread: Thread, last: float) -> None:
    finalize(thread, _end).atexit = False  # before the next line: what is called last comes first
    _filter.last[thread] = last
    for logger in _loggers():
        logger.addFilter(_filter)


def _end() -> None:
    if not _filter.last:
        for logger in _loggers():
            logger.removeFilter(_filter)


def _loggers() -> list[logging.Logger]:
    return [logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith("kafka.")]
