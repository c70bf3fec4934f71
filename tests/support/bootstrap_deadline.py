"""Until when kafka-python looks for a first broker: tests count it from a failure, not from the beginning."""

from __future__ import annotations

import time
from typing import Any

import pytest

from loadwise.assignor.clients.kafka_python import logins

SHORT_S = 0.3
"""How long a client still tries after the first failure: it may not know that the broker never answers."""


class Deadline:
    """Until when kafka-python looks for a broker; a test brings it forward."""

    def __init__(self) -> None:
        self._at_s = time.monotonic() + 3600

    def comes(self, in_s: float = 0.0) -> None:
        self._at_s = min(self._at_s, time.monotonic() + in_s)

    def __gt__(self, now_s: float) -> bool:
        return self._at_s > now_s

    def __sub__(self, now_s: float) -> float:
        return self._at_s - now_s


def deadline_of_bootstrap(monkeypatch: pytest.MonkeyPatch) -> Deadline:
    """Let clients look for a broker until this deadline, whatever their ``bootstrap_timeout_ms`` is."""
    bootstrap, until = logins._Manager._do_bootstrap, Deadline()

    async def bootstrap_until(self: Any, _: float) -> Any:
        return await bootstrap(self, until)

    monkeypatch.setattr(logins._Manager, "_do_bootstrap", bootstrap_until)
    return until


def give_up_soon_after_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a client give up soon after its first failure, however long that takes on a slow machine."""
    failed, deadline = logins._Manager._failed, deadline_of_bootstrap(monkeypatch)

    def failed_and_late(*args: Any) -> None:
        failed(*args)
        deadline.comes(in_s=SHORT_S)

    monkeypatch.setattr(logins._Manager, "_failed", failed_and_late)
