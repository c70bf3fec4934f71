"""Let a Spark application have only one stream in a group, because a second one would get some of the partitions.

A query that loads a stream twice (such as a topic joined with itself) would join the group twice. Each side would see
half of the partitions. Each would also wait for the other in every rebalance, since one thread of Spark asks them in
turn. Spark passes a Python source nothing about its query except the folder of the application's temporary files. A
file lock there ends with the process that holds it, and the folder with the application.
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
"""Set by Spark for its Python processes."""
WAIT_S = 20.0
"""How long a stopped stream may take to leave the group before its successor counts as a second stream."""
ASK_AGAIN_S = 0.05


def claimed(group: str, brokers: str) -> IO[bytes] | None:
    """Lock the group for this application's streams; the caller closes it. None if Spark names no folder.

    Raises `OptionError` if another stream of the application has the lock.
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
