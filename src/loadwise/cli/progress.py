"""Progress on standard error while a person waits: on a terminal, where rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from loadwise.installation import is_installed


def _is_shown() -> bool:
    return sys.stderr.isatty() and is_installed("rich")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show the reason for waiting; the line is wiped at the end."""
    if not _is_shown():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(what, total=None)
        yield


def bar(items: Sequence[str], what: str) -> Iterator[str]:
    """Pass the items on, with a bar of how many are done; it is wiped at the end."""
    if not _is_shown():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, console=Console(stderr=True), transient=True)
