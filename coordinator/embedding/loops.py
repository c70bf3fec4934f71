"""Runs coroutines on uvloop if it is installed, else on asyncio's event loop.

A coordinator in ``async with`` runs on its user's event loop instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's main coroutine to its end, as `asyncio.run` does."""
    try:
        # Imported here, because it is not always installed.
        from uvloop import new_event_loop  # noqa: PLC0415
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
