"""What kafka-python logs for a client that its user does not see: each warning and each error once.

A member without records, or a reader of offsets, logs what its user cannot act on, many times a second while a broker
is away. kafka-python's loggers are shared by all of its clients; the thread tells which one it was.
"""

from __future__ import annotations

import logging
from threading import Thread
from weakref import WeakKeyDictionary


class _LoggedOnce(logging.Filter):
    """Passes a message of an unseen client's thread the first time; everything else always."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: WeakKeyDictionary[Thread, set[tuple[str, object]]] = WeakKeyDictionary()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        for thread, seen in list(self.seen.items()):
            if thread.ident == record.thread:
                message = record.name, record.msg
                new = message not in seen
                seen.add(message)
                return new
        return True


_filter = _LoggedOnce()


def log_once(thread: Thread) -> None:
    """Let kafka-python log each warning and error of this thread once."""
    _filter.seen[thread] = set()
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("kafka."):
            logging.getLogger(name).addFilter(_filter)
