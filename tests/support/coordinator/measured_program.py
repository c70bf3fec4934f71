"""`loadwise` as a program that appends to a file, twice a second, how much memory it uses.

Resident memory would be another measure: malloc keeps what a burst took. ``mallinfo2`` tells what is in use of it, and
Python how many small blocks are.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from typing import TextIO

from loadwise.cli import main

NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]


def _report(file: TextIO) -> None:
    libc = ctypes.CDLL("libc.so.6")
    libc.mallinfo2.restype = _Mallinfo
    while True:
        # Objects above 512 bytes, as batches of records are, are malloc's; the others are Python's blocks.
        now = libc.mallinfo2()
        print(time.monotonic(), now.uordblks + now.hblkhd, sys.getallocatedblocks(), file=file, flush=True)
        time.sleep(0.5)  # between two looks


if __name__ == "__main__":
    report = open(sys.argv.pop(1), "w")  # noqa: SIM115 (until the program is killed)
    threading.Thread(target=_report, args=(report,), daemon=True).start()
    sys.exit(main())
