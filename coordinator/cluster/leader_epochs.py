"""Where each leader epoch of a partition begins in its log. Mirrors Kafka's ``LeaderEpochFileCache``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadwise.coordinator.cluster.records import EpochStart

_UNKNOWN = -1


class EpochEnd(NamedTuple):
    """Where an epoch's records end; both -1 if it is not known."""

    epoch: int = _UNKNOWN
    end_offset: int = _UNKNOWN


class LeaderEpochs:
    """The leader epochs that wrote records, or may still: the latest counts even while it is empty."""

    def __init__(self, starts: Sequence[EpochStart] = (EpochStart(0, 0),)) -> None:
        self._starts = list(starts)

    @property
    def starts(self) -> Sequence[EpochStart]:
        """Where each begins."""
        return tuple(self._starts)

    @property
    def latest(self) -> int:
        """The epoch of the present leader."""
        return self._starts[-1][0]

    def start(self, epoch: int, offset: int) -> None:
        """A new leader's epoch begins at ``offset``; what wrote nothing before it is forgotten."""
        self._starts = [each for each in self._starts if each[1] < offset]
        self._starts.append(EpochStart(epoch, offset))

    def of(self, offset: int) -> int:
        """The epoch in which the record at ``offset`` was written, or would be."""
        return next(epoch for epoch, start in reversed(self._starts) if start <= offset)

    def end_of(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The largest epoch up to ``epoch`` and where it ends, for a client that compares logs (KIP-101, KIP-320)."""
        if epoch == self.latest:
            return EpochEnd(epoch, log_end_offset)
        later = [start for each, start in self._starts if each > epoch]
        if epoch == _UNKNOWN or not later:
            return EpochEnd()
        known = [each for each, _ in self._starts if each <= epoch]
        return EpochEnd(known[-1] if known else epoch, later[0])
