"""Exchanging partitions between two members so that the higher of the two comes down.

One or two partitions go one way and none, one or two the other. Of all such exchanges the one is chosen that brings the
two members nearest to the same level. Members are taken from the highest level down, so what is improved is the whole
order of levels: when nothing helps the highest any more (it may have just one, very heavy partition), the next one's
turn comes.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.model import Bools, Floats, Ints


def polish(
    board: Board,
    good_enough: float,
    *,
    keep_local: bool = False,
    partners: int = 12,
    steps: int = 400,
) -> None:
    """Exchange partitions until no member above the level ``good_enough`` can be helped.

    Only partitions that are not with their home are touched, so nothing more is taken from an owner.
    ``partners``: how many members, from the lowest level up, are tried for each. ``steps`` bounds the exchanges.
    """
    loose = _have_loose(board)
    hopeless = ~loose
    changed = [0] * len(board.capacity)  # the step at which each member's partitions last changed
    tried: dict[tuple[int, int], int] = {}
    for step in range(1, steps + 1):
        level = board.level
        high = int(np.argmax(np.where(hopeless, -1.0, level)))
        if hopeless[high] or level[high] <= good_enough:
            return
        best: tuple[float, Ints, Ints, int] | None = None
        for low in np.argsort(level, kind="stable")[:partners].tolist():
            if level[low] >= level[high]:
                break
            if tried.get((high, low), -1) >= max(changed[high], changed[low]):
                continue
            found = _best_exchange(board, high, low, keep_local=keep_local)
            if found[0] >= level[high] - 1e-4 * good_enough:
                tried[high, low] = step
            elif best is None or found[0] < best[0]:
                best = (*found, low)
                if best[0] <= good_enough:
                    break
        if best is None:
            hopeless[high] = True
            continue
        _, down, up, low = best
        board.move(down, low)
        board.move(up, high)
        changed[high] = changed[low] = step
        for member in (high, low):
            rows = board.rows(member)
            loose[member] = ((board.home[rows] != member) & (board.weight[rows] > 0)).any()
        hopeless = ~loose


def _have_loose(board: Board) -> Bools:
    """bool[M]: who has a partition that is not at home and has a load."""
    loose = (board.owner != board.home) & (board.weight > 0)
    return np.bincount(board.owner[loose], minlength=len(board.capacity)) > 0


def _best_exchange(board: Board, high: int, low: int, *, keep_local: bool) -> tuple[float, Ints, Ints]:
    """The higher level of the two afterwards, what goes down and what goes up."""
    down, down_sum = choices(board, high, low, loose=True, keep_local=keep_local)
    up, up_sum = choices(board, low, high, loose=True, keep_local=keep_local)
    wide, narrow = board.capacity[high], board.capacity[low]
    ideal = (board.load[high] * narrow - board.load[low] * wide) / (wide + narrow)
    order = np.argsort(up_sum, kind="stable")
    after = np.searchsorted(up_sum[order], down_sum - ideal)
    best = (float(board.level[high]), down[0], up[0])  # nothing for nothing
    for near in (np.maximum(after - 1, 0), np.minimum(after, len(order) - 1)):
        moved = down_sum - up_sum[order[near]]
        level = np.maximum((board.load[high] - moved) / wide, (board.load[low] + moved) / narrow)
        index = int(np.argmin(level))
        if level[index] < best[0]:
            best = float(level[index]), down[index], up[order[near[index]]]
    return best[0], best[1][best[1] >= 0], best[2][best[2] >= 0]


def choices(
    board: Board, giver: int, taker: int, *, loose: bool = False, keep_local: bool = False, most: int = 2000
) -> tuple[Ints, Floats]:
    """Sets of up to two partitions that may go, as int64[n, 2] padded with -1, and their loads; the empty one first.

    Sets of two are left out where there would be more than ``most``.
    """
    rows = board.rows(giver)
    allowed = board.may_go(rows, taker, keep_local=keep_local)
    if loose:
        allowed = allowed & (board.home[rows] != giver)
    rows = np.sort(rows[allowed])
    rows = rows[board.weight[rows] > 0]
    sets = np.full((len(rows) + 1, 2), -1)
    sets[1:, 0] = rows
    if len(rows) * (len(rows) - 1) // 2 <= most:
        sets = np.concatenate((sets, rows[_pairs(len(rows))]))
    return sets, np.where(sets >= 0, board.weight[sets], 0.0).sum(axis=1)


@cache
def _pairs(count: int) -> Ints:
    """int64[n, 2]: all pairs of so many things, each once."""
    return np.column_stack(np.triu_indices(count, 1))
