"""How OffsetCommit and TxnOffsetCommit store the offsets of one request, in one turn or in several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.groups.events import CommitOffsets, Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import ROWS_IN_A_TURN, Turns
from loadwise.protocol.error_codes import ErrorCode

_OF_THE_GROUP = frozenset({ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE})
"""Partition errors with which the group still checks the request; the group's error has priority."""


class Commits:
    """Offsets that are stored together once this turn has no room for more.

    ``check`` returns an error before the group checks the client.
    """

    def __init__(
        self,
        call: Call,
        cluster: Cluster,
        group_id: str,
        who: Committer,
        check: Callable[[], ErrorCode] = lambda: ErrorCode.NONE,
    ) -> None:
        self.offsets: dict[Partition, CommittedOffset] = {}
        """Offsets without an error so far."""
        self._rows: list[Any] = []
        """Rows of the response that get the group's error."""
        self._check = check
        self._call = call
        self._cluster = cluster
        self._group_id = group_id
        self._who = who
        self._in_this_turn = 0

    def row_made(self, row: Any = None) -> Turns[None]:
        """Count a row. A turn ends only here, so what was checked is still true when it is stored."""
        if row is not None and row.error_code in _OF_THE_GROUP:
            self._rows.append(row)
        self._in_this_turn += 1
        if self._in_this_turn == ROWS_IN_A_TURN:
            self.store()
            self._in_this_turn = 0
            yield ROWS_IN_A_TURN

    def store(self) -> None:
        """Store the offsets if the group accepts the client, which it does not see without rows, as in Kafka."""
        if not self._rows:
            return
        error = self._check()
        if error is ErrorCode.NONE:
            event = CommitOffsets(token=self._call.token, who=self._who, offsets=self.offsets)
            error = self._cluster.commit_offsets(self._call, self._group_id, event)
        for row in self._rows:
            row.error_code = error or row.error_code
        self.offsets, self._rows = {}, []
