"""Where transactions stand in one partition: which are open, and which were aborted.

Mirrors the transactions of Kafka's ``ProducerStateManager`` and its ``TransactionIndex``. A reader of committed records
gets what lies before the first open transaction, with a list of the aborted transactions in it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

from loadwise.coordinator.cluster.records import AbortedTransaction


class OpenTransactions:
    """The transactions of one partition."""

    def __init__(
        self, first_offsets: Iterable[tuple[int, int]] = (), aborted: Iterable[AbortedTransaction] = ()
    ) -> None:
        self._first_offsets = dict(first_offsets)
        self._aborted = list(aborted)

    @property
    def open(self) -> Mapping[int, int]:
        """Offset of the first record of each open transaction by producer id, the oldest first."""
        return self._first_offsets

    @property
    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions, in the order of their markers."""
        return tuple(self._aborted)

    def begin(self, producer_id: int, offset: int) -> None:
        """A producer's transactional batch stands at ``offset``; only the first of a transaction counts."""
        self._first_offsets.setdefault(producer_id, offset)

    def end(self, producer_id: int, marker_offset: int, *, committed: bool) -> None:
        """A producer's transaction ends with the marker at ``marker_offset``; without records nothing was open."""
        first_offset = self._first_offsets.pop(producer_id, None)
        if first_offset is not None and not committed:
            self._aborted.append(AbortedTransaction(producer_id, first_offset, marker_offset))

    def stable_offset(self, end_offset: int) -> int:
        """The last stable offset: where the first open transaction begins, or the log's end."""
        return next(iter(self._first_offsets.values()), end_offset)

    def aborted_between(self, start: int, end: int) -> Sequence[AbortedTransaction]:
        """The aborted transactions that have records from offset ``start`` up to ``end``, which is not included.

        In the order of their markers. O(aborted transactions from ``start`` on).
        """
        first = bisect_left(self._aborted, start, key=lambda each: each.last_offset)
        return [each for each in self._aborted[first:] if each.first_offset < end]

    def drop_before(self, offset: int) -> None:
        """Forget the aborted transactions that end before ``offset``, as those records were deleted."""
        del self._aborted[: bisect_left(self._aborted, offset, key=lambda each: each.last_offset)]
