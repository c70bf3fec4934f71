"""What kafka-python logs for a client that its user does not see: the first line of a trouble.

A member without records, or a reader of offsets, logs what its user cannot act on, hundreds of times a second while a
broker is away. What the user can act on is raised or reported elsewhere. kafka-python's loggers are shared by all of
its clients; the thread tells which one it was.
"""

from __future__ import annotations

import logging
import math
from threading import Thread
from weakref import WeakKeyDictionary

QUIET_S = 60.0
"""A warning or error of an unseen client is logged where it has had none for so long."""


class _FirstOfATrouble(logging.Filter):
    """Passes a message of an unseen client's thread where that has been quiet before; everything else always."""

    def __init__(self) -> None:
        super().__init__()
        self.last: WeakKeyDictionary[Thread, float] = WeakKeyDictionary()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        for thread, last in list(self.last.items()):
            if thread.ident == record.thread:
                self.last[thread] = max(last, record.created)
                return record.created - last >= QUIET_S
        return True


_filter = _FirstOfATrouble()


def log_once(thread: Thread) -> None:
    """Let kafka-python log the first warning or error of each trouble of this thread's client."""
    _begin(thread, -math.inf)


def log_nothing(thread: Thread) -> None:
    """Let kafka-python log no warning and no error of this thread's client: who calls it logs what it raises."""
    _begin(thread, math.inf)


def _begin(thread: Thread, last: float) -> None:
    _filter.last[thread] = last
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("kafka."):
            logging.getLogger(name).addFilter(_filter)
