"""Range: consecutive partitions to consecutive members. `assignor` has the algorithm, `racks` its rack-aware part."""

from loadwise.assignor.algorithms.range.assignor import Range

__all__ = ["Range"]
