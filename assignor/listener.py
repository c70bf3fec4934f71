"""Calls a user's ``on_decision`` in a thread of its own: a client's thread sends heartbeats, and cannot wait for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.troubles import Troubles

log = logging.getLogger(__name__)

_IDLE_S = 5.0
"""The thread ends after this time without a decision, so that a consumer that is dropped leaves none behind."""
_CLOSING_S = 1.0


class Listener:
    """Passes on decisions, the newest first: of those that come while the function runs, only the last is kept."""

    def __init__(self, function: Callable[[Decision], None]) -> None:
        self.skipped = 0
        """The number of decisions that newer ones replaced before the function could get them."""
        self._function = function
        self._troubles = Troubles()
        self._changed = threading.Condition()
        self._newest: Decision | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def tell(self, decision: Decision) -> None:
        """Pass on a decision; return at once."""
        with self._changed:
            if self._closed:
                return
            self.skipped += self._newest is not None
            self._newest = decision
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="loadwise-on_decision", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Take no more decisions; wait up to a second for the function to get the newest and to return."""
        with self._changed:
            self._closed, thread = True, self._thread
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSING_S)

    def _run(self) -> None:
        while (decision := self._next()) is not None:
            try:
                self._function(decision)
            except Exception as error:
                if self._troubles.begins("on_decision"):
                    log.error("on_decision failed; the group continues", exc_info=error)
            else:
                self._troubles.over("on_decision")

    def _next(self) -> Decision | None:
        """Return the newest decision once there is one; None when the thread ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest is not None or self._closed, _IDLE_S)
            decision, self._newest = self._newest, None
            if decision is None:
                self._thread = None
            return decision
