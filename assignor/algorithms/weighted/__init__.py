"""Weighted: equal load for equal capacity, with little moved. `assignor` has the algorithm, the others its steps."""

from loadwise.assignor.algorithms.weighted.assignor import Weighted

__all__ = ["Weighted"]
