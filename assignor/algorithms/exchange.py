"""Exchanging partitions between two members so that the higher of the two comes down.

One or two partitions go one way and none, one or two the other. Of all such exchanges the one is chosen that brings the
two members nearest to the same level. Members are taken from the highest level down, so what is improved is the whole
order of levels: when nothing helps the highest any more (it may have just one, very heavy partition), the next one's
turn comes.
"""

from __future__ import annotations

import numpy as np

from loadwise.assignor.algorithms.board import Board
from loadwise.assignor.model import Floats, Ints


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
    stuck = np.zeros(len(board.capacity), bool)
    changed = [0] * len(board.capacity)  # the step at which each member's partitions last changed
    tried: dict[tuple[int, int], int] = {}
    for step in range(1, steps + 1):
        level = np.where(stuck, -1.0, board.level)
        high = int(np.argmax(level))
        if level[high] <= good_enough:
            return
        best: tuple[float, Ints, Ints, int] | None = None
        for low in np.argsort(board.level, kind="stable")[:partners].tolist():
            if board.level[low] >= board.level[high]:
                break
            if tried.get((high, low), -1) >= max(changed[high], changed[low]):
                continue
            found = _best_exchange(board, high, low, keep_local=keep_local)
            if found is not None and found[0] < board.level[high] - 1e-4 * good_enough:
                if best is None or found[0] < best[0]:
                    best = (*found, low)
            else:
                tried[high, low] = step
        if best is None:
            stuck[high] = True
            continue
        _, down, up, low = best
        board.move(down, low)
        board.move(up, high)
        changed[high] = changed[low] = step
        stuck[:] = False


def _best_exchange(board: Board, high: int, low: int, *, keep_local: bool) -> tuple[float, Ints, Ints] | None:
    """The higher level of the two afterwards, what goes down and what goes up; None if nothing can go."""
    down, down_sum = choices(board, high, low, loose=True, keep_local=keep_local)
    up, up_sum = choices(board, low, high, loose=True, keep_local=keep_local)
    if not len(down):
        return None
    wide, narrow = board.capacity[high], board.capacity[low]
    ideal = (board.load[high] * narrow - board.load[low] * wide) / (wide + narrow)
    order = np.argsort(up_sum, kind="stable")
    after = np.searchsorted(up_sum[order], down_sum - ideal)
    result: tuple[float, Ints, Ints] | None = None
    for near in (np.maximum(after - 1, 0), np.minimum(after, len(order) - 1)):
        moved = down_sum - up_sum[order[near]]
        level = np.maximum((board.load[high] - moved) / wide, (board.load[low] + moved) / narrow)
        index = int(np.argmin(level))
        if result is None or level[index] < result[0]:
            result = float(level[index]), down[index], up[order[near[index]]]
    return result and (result[0], result[1][result[1] >= 0], result[2][result[2] >= 0])


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
        sets = np.concatenate((sets, rows[np.column_stack(np.triu_indices(len(rows), 1))]))
    return sets, np.where(sets >= 0, board.weight[sets], 0.0).sum(axis=1)
