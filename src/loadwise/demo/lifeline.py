"""A child process lives no longer than its parent: the pipe on its standard input is its lifeline.

The operating system closes the pipe when the parent ends, however it ends, ``kill -9`` included. Run any module so with
``python -m loadwise.demo.lifeline MODULE ARGUMENT…``: when the pipe closes the module gets SIGTERM, and some seconds
later SIGKILL.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Callable

GRACE_S = 4.0
"""How long a process may take to end after its lifeline is cut."""


def watch(on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
    """Call ``on_line`` for every line of standard input and ``on_end`` at its end, in a thread; then exit in time."""

    def read() -> None:
        pending = b""
        # The file descriptor itself: a thread inside sys.stdin would hold its lock when the interpreter shuts down.
        while chunk := os.read(0, 4096):
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                on_line(line.decode())
        on_end()
        time.sleep(GRACE_S)
        os._exit(1)

    threading.Thread(target=read, name="lifeline", daemon=True).start()


def main() -> None:
    """Run the module named on the command line for as long as standard input is open."""
    watch(lambda _: None, lambda: os.kill(os.getpid(), signal.SIGTERM))
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
