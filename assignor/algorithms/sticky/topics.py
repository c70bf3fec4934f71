"""The last criterion of sticky, where Java's answer is not prescribed: every topic spread evenly over its subscribers.

A member with all partitions of one busy topic is as balanced as any other by count. So partitions that change their
owner anyway are swapped between members, within one class (same subscribers, same racks), while that brings the numbers
that members have of a topic nearer to each other. Counts, racks and what is kept stay as they are.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.model import Bools, Ints, Owners

_CELLS = 20_000_000
"""Topics times members that are looked at, over all swaps of a class."""


def spread_topics(owner: Owners, topic_of: Owners | Ints, class_of: Owners, kept: Bools, members: int) -> None:
    """Swap, in ``owner``, partitions that are not ``kept``; all four have an entry a partition. Bounded by `_CELLS`."""
    for class_ in np.unique(class_of[~kept]).tolist():
        rows = np.flatnonzero(class_of == class_)
        topics, topic = np.unique(topic_of[rows], return_inverse=True)
        if len(topics) > 1:
            # A topic may have partitions of other classes too, on other racks: its members have those as well.
            there = rows if len(rows) == len(owner) else np.flatnonzero(np.isin(topic_of, topics))
            cell = np.searchsorted(topics, topic_of[there]) * members + owner[there]
            count = np.bincount(cell, minlength=len(topics) * members).reshape(len(topics), members)
            _spread(owner, rows, topic.reshape(-1), kept[rows], count)


def _spread(owner: Owners, rows: Ints, topic: Ints, kept: Bools, count: Ints) -> None:
    """Swap among ``rows``; ``count`` is int64[topics, members], how many partitions of each topic a member has."""
    topics, members = count.shape
    cell = topic * members + owner[rows]
    loose: dict[int, list[int]] = {}  # the partitions of each cell that may be swapped
    for place in np.flatnonzero(~kept).tolist():
        loose.setdefault(int(cell[place]), []).append(int(rows[place]))
    free = np.zeros(topics * members, np.int64)
    free[list(loose)] = [len(partitions) for partitions in loose.values()]
    free = free.reshape(count.shape)
    swaps = free.any(axis=0)  # members that have something to swap
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
        if gap[uneven] + back[other] <= 2:  # the swap would make the other topic as uneven as this one is
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
