"""Sticky: equal counts, with little moved. `assignor` has the algorithm, `transport` its search for the best counts."""

from loadwise.assignor.algorithms.sticky.assignor import Sticky

__all__ = ["Sticky"]
