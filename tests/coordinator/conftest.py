"""The server's tests run on both event loops: asyncio's own, and uvloop's where that is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

LOOPS: dict[str, Callable[[], Any]] = {"asyncio": asyncio.new_event_loop}
try:
    import uvloop
except ImportError:  # there is none for Windows
    pass
else:
    LOOPS["uvloop"] = uvloop.new_event_loop
ON_BOTH = {"test_clock.py", "test_embedded.py", "test_hostile_input.py", "test_server.py", "test_silent_peers.py"}


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, Callable[[], Any]]:
    """What pytest-asyncio makes the loops of a test with, which runs once on each."""
    return LOOPS if item.path.name in ON_BOTH else {"asyncio": LOOPS["asyncio"]}
