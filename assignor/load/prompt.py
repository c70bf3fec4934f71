"""Asks a user's load source, and waits no longer than heartbeats allow: the group waits for the leader's answer."""

from __future__ import annotations

import threading
from collections.abc import Collection

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.source import LoadSnapshot, LoadSource


class Prompt:
    """A source that answers within ``limit_s`` seconds, or raises `BadGroupError`.

    A call that has not returned is not made a second time until it returns.
    """

    def __init__(self, source: LoadSource, limit_s: float = 1.0) -> None:
        self.source = source
        self.limit_s = limit_s
        self._call: _Call | None = None

    def snapshot(self, topics: Collection[str]) -> LoadSnapshot | None:
        """Return the source's answer; raise what it raises."""
        if self._call is not None and self._call.is_alive():
            raise BadGroupError("its last snapshot() has not returned yet")
        call = self._call = _Call(self.source, topics)
        call.start()
        call.join(self.limit_s)
        if call.is_alive():
            raise BadGroupError(f"its snapshot() did not return within {self.limit_s:g} s; read in the background")
        if call.error is not None:
            raise call.error
        return call.answer


class _Call(threading.Thread):
    def __init__(self, source: LoadSource, topics: Collection[str]) -> None:
        super().__init__(name="loadwise-load", daemon=True)
        self._source, self._topics = source, topics
        self.answer: LoadSnapshot | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.answer = self._source.snapshot(self._topics)
        except Exception as error:  # noqa: BLE001 (it is raised where the answer is awaited)
            self.error = error
