"""The console on which commands print with rich."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_LOG_WIDTH = 120


def console() -> Console:
    """Return the console of standard output; a pipe or a log is as wide as ``COLUMNS`` says, or 120 characters."""
    from rich.console import Console

    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isdecimal() and int(given) else _LOG_WIDTH
    return Console(highlight=False, width=None if sys.stdout.isatty() else width)


def columns() -> int:
    """Return the width of standard output, by the same rule, for what is printed without rich."""
    return shutil.get_terminal_size((_LOG_WIDTH, 0)).columns
