"""Sticky: equal counts with few moves. `assignor` has the algorithm, `transport` the search for the best counts."""

from loadwise.assignor.algorithms.sticky.assignor import Sticky

__all__ = ["Sticky"]
