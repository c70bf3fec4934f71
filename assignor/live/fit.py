"""Least squares over polls: the time of a poll itself, and of a record of each topic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from loadwise.assignor.model import Floats

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
    rows: float = 0.0

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
        return Sums(now_ns, self.products * kept, self.with_time * kept, self.squares * kept, self.rows * kept)

    def plus(self, counts: Floats, busy_s: float) -> Sums:
        """Return the sums with similar polls added."""
        each = counts / counts[1:].sum()
        products, with_time = self.products + np.outer(each, counts), self.with_time + each * busy_s
        return Sums(
            self.at_ns, products, with_time, self.squares + busy_s**2 / counts[1:].sum(), self.rows + counts[POLL]
        )

    def of(self, columns: list[int]) -> Sums:
        """Return the sums with these columns only; -1 stands for a new column."""
        known = np.array(columns) >= 0
        products = np.where(np.outer(known, known), self.products[np.ix_(columns, columns)], 0.0)
        return Sums(self.at_ns, products, np.where(known, self.with_time[columns], 0.0), self.squares, self.rows)


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
    So the polls go first, unless their own time is certain.
    """
    products, size = sums.products, len(sums.with_time)
    times, covariance = np.zeros(size), np.zeros((size, size))
    scale = np.sqrt(np.diag(products))
    places = np.flatnonzero(scale > NEGLIGIBLE * scale.max())
    while len(places):
        each = scale[places]
        values, vectors = np.linalg.eigh(products[np.ix_(places, places)] / np.outer(each, each))
        undone = (vectors / np.maximum(values, NEGLIGIBLE)) @ vectors.T
        found = undone @ (sums.with_time[places] / each)
        times[:] = 0
        times[places] = found / each
        variance = _variance(sums, times)
        certain = found[0] ** 2 > _CERTAIN**2 * undone[0, 0] * variance
        if places[0] == POLL and (undone[0, 0] > _TOLD_APART or (found.min() < 0 and not certain)):
            places = places[1:]
        elif found.min() < 0:
            places = np.delete(places, np.argmin(found))
        else:
            covariance[np.ix_(places, places)] = undone / np.outer(each, each) * variance
            return Fit(times, covariance)
    return Fit(np.zeros(size), covariance)


def _variance(sums: Sums, times: Floats) -> float:
    """Return the variance of a poll's time by record that these times leave."""
    squares = float(sums.squares - 2 * times @ sums.with_time + times @ sums.products @ times)
    degrees = max(sums.rows - np.count_nonzero(times), NEGLIGIBLE)
    return max(squares, _PRECISEST**2 * sums.squares) / degrees
