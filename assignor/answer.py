"""The leader's answer on the wire: every member's assignment bytes, made straight from rows.

The bytes are those of `loadwise.protocol.consumer.Assignment`, topics in Java's string order. A large group's answer
has a million topics in it, two for each object that Python would make of them on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from loadwise.assignor.model import Assignment
from loadwise.collector import collector_paused
from loadwise.protocol import primitive
from loadwise.protocol.consumer import NEWEST_VERSION

_WORD = np.dtype(">i4")


def encode(assignment: Assignment, user_data: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Member id to the bytes that its SyncGroup is answered with; every member has some. O(P).

    ``user_data`` has what else the leader tells each member; a member may be missing.

    Raises `loadwise.protocol.errors.UnencodableError` for a topic whose name has no form on the wire.
    """
    group, cells = assignment.group, assignment.cells()
    used = np.zeros(len(group.topics), bool)
    used[cells.topic] = True
    encoded = [primitive.string(name) if use else b"" for name, use in zip(group.topics, used.tolist(), strict=True)]
    # A cell is its topic's name, then the number of its partitions and the partitions themselves: words of 4 bytes.
    words = np.insert(cells.partition, cells.start, cells.length).astype(_WORD).tobytes()
    stop = 4 * (cells.start + cells.length + np.arange(1, len(cells.start) + 1))
    start = stop - 4 * (cells.length + 1)
    before, notes = primitive.INT16.pack(NEWEST_VERSION), user_data or {}
    with collector_paused():
        parts: list[bytes] = [b""] * (2 * len(stop))
        parts[::2] = np.array(encoded, object)[cells.topic].tolist()
        parts[1::2] = [words[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
        rest = iter(parts)
        return {
            member: b"".join(
                (
                    before,
                    primitive.INT32.pack(count),
                    *islice(rest, 2 * count),
                    primitive.nullable_bytes(notes.get(member)),
                )
            )
            for member, count in zip(group.members, cells.count.tolist(), strict=True)
        }
