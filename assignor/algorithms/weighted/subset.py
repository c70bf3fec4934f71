"""Choose the partitions that a member releases: a set with at least a given load, and as little more as possible."""

from __future__ import annotations

from functools import cache

import numpy as np

from loadwise.assignor.model import Bools, Floats, Ints

_EXACT_UP_TO = 14


def lightest_cover(weight: Floats, amount: float, *, tries: int = 8) -> Ints:
    """Return the indices of the lightest set that weighs ``amount`` or more; the smallest of equally light sets.

    Exact for up to `_EXACT_UP_TO` weights, approximate for more. Then the largest weights that fit are taken first, and
    one or two others make up the rest. This is repeated ``tries`` times, each time without the largest one. Returns
    all indices if they weigh less.
    """
    if amount <= 0:
        return np.empty(0, np.int64)
    if weight.sum() <= amount:
        return np.arange(len(weight))
    order = np.argsort(-weight, kind="stable")
    heavy = weight[order]
    if len(heavy) <= _EXACT_UP_TO:
        sums, sets = _all_sets(heavy)
        sums = np.where(sums >= amount, sums, np.inf)
        lightest = np.flatnonzero(sums <= sums.min() * (1 + 1e-12))
        return np.sort(order[sets[lightest[np.argmin(sets[lightest].sum(axis=1))]]])
    upto = np.concatenate(([0.0], np.cumsum(heavy)))
    best: tuple[float, list[int]] = (np.inf, [])
    for skip in range(min(tries, len(heavy))):
        chosen = _fitting(heavy, upto, skip, amount)
        total = float(heavy[chosen].sum())
        if total < amount:
            rest = np.delete(np.arange(len(heavy)), chosen)
            total, last = _make_up(heavy, rest, amount, total)
            chosen = chosen + last
        if total < best[0]:
            best = (total, chosen)
    return np.sort(order[best[1]])


def _fitting(heavy: Floats, upto: Floats, start: int, amount: float) -> list[int]:
    """Take each weight that still fits, from ``start``, the largest first; ``upto`` are the cumulative sums.

    It steps over runs of weights that fit. There are few runs because the remaining amount is below the lightest weight
    of the last run.
    """
    chosen: list[int] = []
    index, left = start, amount
    while index < len(heavy):
        end = int(np.searchsorted(upto, upto[index] + left, side="right")) - 1
        chosen += range(index, end)
        left -= float(upto[end] - upto[index])
        index = max(end, int(np.searchsorted(-heavy, -left)))
        if index == end:  # it would fit, except for rounding
            index += 1
    return chosen


def _make_up(heavy: Floats, rest: Ints, amount: float, total: float) -> tuple[float, list[int]]:
    """Return the one or two of the rest that bring ``total`` just to ``amount``."""
    missing = amount - total
    single = rest[heavy[rest] >= missing]
    best: tuple[float, list[int]] = (np.inf, [])
    if len(single):
        lightest = int(single[np.argmin(heavy[single])])
        best = (total + float(heavy[lightest]), [lightest])
    few = rest[-64:]  # the heaviest come first
    first, second = pairs(len(few)).T
    light = heavy[few]
    sums = light[first] + light[second]
    sums = np.where(sums >= missing, sums, np.inf)
    if len(sums) and total + sums.min() < best[0]:
        pair = int(np.argmin(sums))
        best = (total + float(sums[pair]), [int(few[first[pair]]), int(few[second[pair]])])
    return best


@cache
def pairs(count: int) -> Ints:
    """int64[n, 2]: all pairs of ``count`` things, each once."""
    return np.column_stack(np.triu_indices(count, 1))


def _all_sets(weight: Floats) -> tuple[Floats, Bools]:
    sets = (np.arange(2 ** len(weight))[:, np.newaxis] >> np.arange(len(weight))) & 1 == 1
    return sets @ weight, sets
