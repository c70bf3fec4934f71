"""One stream of a Spark application in a group, and no second one: it would get a part of the partitions for itself.

A query that loads a stream twice (as for a join of a topic with itself) would join the group twice and see half of the
partitions on each side, and each of the two would wait for the other in every rebalance, since one thread of Spark asks
them in turn. Spark tells a Python source nothing of its query, but where the application keeps its temporary files. A
file that is locked there goes with the process that holds it, and with the application.
"""

from __future__ import annotations

import os
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import IO

from loadwise.spark_source.errors import OptionError

FOLDERS = "SPARK_LOCAL_DIRS"
"""What Spark sets for the Python processes that it starts."""
WAIT_S = 20.0
"""How long a stream that was stopped may take to leave the group, before its successor is taken for a second one."""
ASK_AGAIN_S = 0.05


def claimed(group: str, brokers: str) -> IO[bytes] | None:
    """A lock on the group for this application's streams, to be closed in the end; None where Spark names no folder.

    Raises `OptionError` where another stream of the application has it.
    """
    folder = os.environ.get(FOLDERS, "").split(",")[0]
    if not folder or sys.platform == "win32":
        return None
    import fcntl  # noqa: PLC0415 - Windows has none

    name = sha256(f"{brokers}\n{group}".encode()).hexdigest()[:16]
    file = (Path(folder) / f"loadwise-member-{name}").open("wb")
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(ASK_AGAIN_S)
                continue
            file.close()
            raise OptionError(
                "kafka.group.id",
                f"this Spark application has a stream in group {group} already, and the two would share the"
                " partitions. To read all of them twice, load the stream once and use its DataFrame twice, or give each"
                " load a group of its own; to take part as several members, set assignment.members",
            ) from None
        return file
