"""Keep a retried commit from overwriting a newer one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

_Partition = TypeVar("_Partition", bound=Hashable)
_Offset = TypeVar("_Offset")


class NewestCommits:
    """Tracks the newest pending commit of each partition."""

    def __init__(self) -> None:
        self._count = 0
        self._newest: dict[Hashable, int] = {}
        self._under_way = 0

    def begin(self, offsets: Mapping[_Partition, _Offset]) -> int:
        """Register a commit and return its number. `end` must follow."""
        self._count += 1
        self._under_way += 1
        self._newest |= dict.fromkeys(offsets, self._count)
        return self._count

    def of(self, number: int, offsets: Mapping[_Partition, _Offset]) -> dict[_Partition, _Offset]:
        """Return the offsets of a commit, without partitions for which a newer commit has begun."""
        return {each: offset for each, offset in offsets.items() if self._newest[each] == number}

    def end(self) -> None:
        """Note that a commit has ended, with any result."""
        self._under_way -= 1
        if not self._under_way:
            self._newest.clear()
