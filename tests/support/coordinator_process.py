"""Our coordinator as a program of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def coordinator(*options: str) -> Iterator[str]:
    """A coordinator on a free port, with these options of the command line; its address."""
    with coordinator_with_pid(*options) as (address, _):
        yield address


@contextmanager
def coordinator_with_pid(*options: str) -> Iterator[tuple[str, int]]:
    """The same, and its process."""
    command = [sys.executable, "-m", "loadwise", "coordinator", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1], process.pid
        finally:
            process.terminate()
