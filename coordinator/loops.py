"""Which event loop the coordinator runs on where it makes one itself: uvloop's where that is installed, else asyncio's.

A coordinator that is entered with ``async with`` runs on its user's loop, whichever that is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program's main coroutine to its end, as `asyncio.run` does."""
    try:
        # Here, not above: it is not always installed.
        from uvloop import new_event_loop  # noqa: PLC0415
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
