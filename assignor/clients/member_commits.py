"""How the commits of a member go through rebalances; the coordinators of kafka-python and aiokafka share it.

The broker accepts commits of the old generation until all members have joined, and of the new one from the leader's
SyncGroup on. In between, a commit of partitions that the member keeps is retried.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, TypeVar

from loadwise.assignor.clients.commit_notes import with_note
from loadwise.assignor.clients.deleted_topics import DeletedTopics, Told

AGAIN_S = 0.02
"""The pause between two attempts of a commit that may succeed once the join ends."""

Commit = Callable[[Mapping[Any, Any]], Awaitable[None]]
_Partition = TypeVar("_Partition", bound=Hashable)
_Offset = TypeVar("_Offset")


class MemberCommits:
    """The commits of one member; ``errors`` is its client's module of errors."""

    def __init__(self, group_id: str, errors: Any) -> None:
        self.deleted_topics = DeletedTopics(group_id)
        self._errors = errors
        self._takes_notes = True  # the broker allows commit metadata of the needed size
        self._newest = NewestCommits()

    async def existing(
        self,
        offsets: Mapping[Any, Any],
        commit: Commit,
        note: Callable[[], str] | None,
        told_of: Callable[[set[str]], Awaitable[Told]],
    ) -> None:
        """Commit without offsets of deleted topics, and with a note for the leader; no ``note``: it needs none."""
        try:
            await self._noted(offsets, commit, note)
        except self._errors.UnknownTopicOrPartitionError:
            kept = self.deleted_topics.drop(offsets, await told_of({each.topic for each in offsets}))
            if len(kept) == len(offsets):
                raise
            await self._noted(kept, commit, note)

    async def _noted(self, offsets: Mapping[Any, Any], commit: Commit, note: Callable[[], str] | None) -> None:
        if note is None:
            await commit(offsets)
            return
        try:
            await commit(with_note(offsets, note() if self._takes_notes else ""))
        except self._errors.OffsetMetadataTooLargeError:
            if not self._takes_notes:
                raise
            self._takes_notes = False
            await commit(with_note(offsets, ""))

    async def patiently(
        self,
        offsets: Mapping[Any, Any],
        commit: Commit,
        *,
        goes_on: Callable[[tuple[Any, bool], Exception], bool],
        membership: Callable[[], tuple[Any, bool]],
        state_of: Callable[[Any], object],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        """Commit, and retry while ``goes_on(membership before, error)`` and the member holds the partitions.

        ``membership`` returns the generation and whether a join is pending: that may end before the commit is answered.
        ``state_of`` returns the client's state of a partition, another one if the partition was lost in between.
        """
        held = [state_of(each) for each in offsets]
        number, left = self._newest.begin(offsets), offsets
        try:
            while left:
                before = membership()
                try:
                    await commit(left)
                    return
                except Exception as error:
                    still = all(state_of(each) is state for each, state in zip(offsets, held, strict=True))
                    if not (still and goes_on(before, error)):
                        raise
                await sleep(AGAIN_S)
                left = self._newest.of(number, left)
        finally:
            self._newest.end()


class NewestCommits:
    """The newest pending commit of each partition, so that a retried commit does not overwrite a newer one."""

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
