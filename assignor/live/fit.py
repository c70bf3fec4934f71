"""Least squares over polls: the time of a poll itself, and of a record of each topic.

The variance of a poll's time is assumed to grow with its records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from loadwise.assignor.model import Bools, Floats

POLL, OTHERS, FIRST = 0, 1, 2
"""The columns of the polls themselves, of topics without a column of their own, and of the first topic."""
NEGLIGIBLE = 1e-9
_NS, _TOLD_APART = 1e-9, 1e4
_CERTAIN = 3.0
"""A time is certain if it is above 0 by this many standard errors."""
_PRECISEST = 1e-3
"""The least relative error of a time, so that rounding does not separate topics that always come in one proportion."""


@dataclass(frozen=True, eq=False, slots=True)
class Sums:
    """The normal equations of polls, with the columns above."""

    at_ns: int = 0
    products: Floats = field(default_factory=lambda: np.zeros((FIRST, FIRST)))
    with_time: Floats = field(default_factory=lambda: np.zeros(FIRST))
    squares: float = 0.0

    @property
    def records(self) -> Floats:
        """float64[columns]: the number of polls, and of their records of each topic."""
        return np.asarray(self.products[1:].sum(axis=0))

    @property
    def busy_s(self) -> float:
        """The total time of these polls."""
        return float(self.with_time[1:].sum())

    def faded(self, now_ns: int, half_life_s: float) -> Sums:
        """Return the sums faded to a later time."""
        kept = 0.5 ** (max(now_ns - self.at_ns, 0) * _NS / half_life_s)
        return Sums(now_ns, self.products * kept, self.with_time * kept, self.squares * kept)

    def plus(self, counts: Floats, busy_s: float) -> Sums:
        """Return the sums with similar polls added."""
        each = counts / counts[1:].sum()
        products, with_time = self.products + np.outer(each, counts), self.with_time + each * busy_s
        return Sums(self.at_ns, products, with_time, self.squares + busy_s**2 / counts[1:].sum())

    def of(self, columns: list[int]) -> Sums:
        """Return the sums with these columns only; -1 stands for a new column."""
        known = np.array(columns) >= 0
        products = np.where(np.outer(known, known), self.products[np.ix_(columns, columns)], 0.0)
        return Sums(self.at_ns, products, np.where(known, self.with_time[columns], 0.0), self.squares)


class Fit(NamedTuple):
    """The times of polls and records, and their covariance; 0 if unknown."""

    times: Floats
    covariance: Floats

    def takes(self, counts: Floats) -> tuple[float, float]:
        """Return the seconds for these numbers of polls and records, and the standard error."""
        return float(counts @ self.times), math.sqrt(max(float(counts @ self.covariance @ counts), 0.0))


def fitted(sums: Sums) -> Fit:
    """Fit the times of the columns; those that would be negative, or cannot be separated, are left out and take 0.

    A topic's time is negative by chance if most polls are of one size: what its records take seems to be the polls'.
    So the polls go first, unless their own time is certain. A topic that is left out takes less than the error of its
    time. So the covariance is that with all topics: the error is large only if another topic comes in proportion to it.
    """
    products, poll = sums.products, np.arange(len(sums.with_time)) == POLL
    scale = np.sqrt(np.diag(products))
    there = scale > NEGLIGIBLE * scale.max()
    counted, covariance = there, None
    while True:
        undone = _undone(products, counted)
        covariance = undone if covariance is None else covariance
        times = undone @ sums.with_time
        variance = _variance(sums, times)
        certain = times[POLL] ** 2 > _CERTAIN**2 * undone[POLL, POLL] * variance
        apart = undone[POLL, POLL] * products[POLL, POLL] <= _TOLD_APART
        if counted[POLL] and not (apart and (certain or times.min() >= 0)):
            counted, covariance = there & ~poll, None
        elif times.min() < 0:
            counted = counted & (times * scale > (times * scale).min())
        else:
            return Fit(times, covariance * variance)


def _undone(products: Floats, counted: Bools) -> Floats:
    """Return the inverse of the products of these columns; 0 for all others."""
    places = np.ix_(counted, counted)
    each = np.sqrt(np.diag(products)[counted])
    values, vectors = np.linalg.eigh(products[places] / np.outer(each, each))
    undone = np.zeros(products.shape)
    undone[places] = (vectors / np.maximum(values, NEGLIGIBLE)) @ vectors.T / np.outer(each, each)
    return undone


def _variance(sums: Sums, times: Floats) -> float:
    """Return the variance of a poll's time by record that these times leave."""
    squares = float(sums.squares - 2 * times @ sums.with_time + times @ sums.products @ times)
    degrees = max(float(sums.records[POLL]) - np.count_nonzero(times), NEGLIGIBLE)
    return max(squares, _PRECISEST**2 * sums.squares) / degrees
