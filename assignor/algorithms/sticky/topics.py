"""The last criterion of sticky, which Java does not have: spread every topic evenly over its subscribers.

By count, a member with all partitions of one busy topic is as balanced as any other. So partitions that move anyway
are swapped between members, within one class (same subscribers, same racks), while that evens out the members' numbers
of partitions of a topic. Counts, racks and kept partitions do not change.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Bools, Ints, Owners

_CELLS = 20_000_000
"""Limit for topics times members over all swaps of a class."""


def spread_topics(owner: Owners, topic_of: Owners | Ints, class_of: Owners, kept: Bools, members: int) -> None:
    """Swap partitions that are not ``kept``, in ``owner``. Bounded by `_CELLS`.

    The arrays have one entry for each partition.
    """
    for class_ in np.unique(class_of[~kept]).tolist():
        rows = np.flatnonzero(class_of == class_)
        topics, topic = np.unique(topic_of[rows], return_inverse=True)
        if len(topics) > 1:
            # A topic may also have partitions of other classes, on other racks; they count for its members, too.
            there = rows if len(rows) == len(owner) else np.flatnonzero(np.isin(topic_of, topics))
            cell = np.searchsorted(topics, topic_of[there]) * members + owner[there]
            count = np.bincount(cell, minlength=len(topics) * members).reshape(len(topics), members)
            _spread(owner, rows, topic.reshape(-1), kept[rows], count)


def _spread(owner: Owners, rows: Ints, topic: Ints, kept: Bools, count: Ints) -> None:
    """Swap among ``rows``; ``count``, int64[topics, members], is each member's number of partitions of each topic."""
    topics, members = count.shape
    cell = topic * members + owner[rows]
    loose: dict[int, list[int]] = {}  # the partitions of each cell that may be swapped
    for place in np.flatnonzero(~kept).tolist():
        loose.setdefault(int(cell[place]), []).append(int(rows[place]))
    free = np.zeros(topics * members, np.int64)
    free[list(loose)] = [len(partitions) for partitions in loose.values()]
    free = free.reshape(count.shape)
    swaps = free.any(axis=0)  # members that can swap something
    settled = np.zeros(topics, bool)
    for _ in range(max(1, _CELLS // count.size)):
        highest = np.where(free > 0, count, -1)
        lowest = np.where(swaps, count, np.iinfo(np.int64).max)
        gap = np.where(settled, 0, highest.max(axis=1) - lowest.min(axis=1))
        uneven = int(np.argmax(gap))
        if gap[uneven] < 2:
            return
        giver, taker = int(np.argmax(highest[uneven])), int(np.argmin(lowest[uneven]))
        back = np.where(free[:, taker] > 0, count[:, taker] - count[:, giver], -gap[uneven])
        back[uneven] = -gap[uneven]
        other = int(np.argmax(back))
        if gap[uneven] + back[other] <= 2:  # the swap would make the other topic as uneven as this one
            settled[uneven] = True
            continue
        for moved, source, target in ((uneven, giver, taker), (other, taker, giver)):
            row = loose[moved * members + source].pop()
            loose.setdefault(moved * members + target, []).append(row)
            owner[row] = target
            for table in (count, free):
                table[moved, source] -= 1
                table[moved, target] += 1
        settled[:] = False
