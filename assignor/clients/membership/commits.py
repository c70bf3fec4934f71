"""Commits of a member that fetches nothing: in order, with its generation, only for partitions that it still owns.

A classic group's coordinator checks the generation of a commit, but not the owner of a partition. A commit may be
queued while the coordinator is down and sent after the partition has moved. It would then set the new owner's offset
back. So each partition of a commit carries when it was acquired, and is dropped if that has changed.

What an eager member leaves before it joins is nobody else's until the coordinator answers the JoinGroup. Until then it
can be committed, and afterwards if the member gets it back.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.coordinator.base import MemberState  # all 3.0 versions have it here
from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaTimeoutError, RebalanceInProgressError
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, TopicPartition

RETRY_S = 0.02
"""The pause between two attempts of a commit that may succeed once the join ends."""
LONGEST_RETRY_S = 1.0
"""The longest pause; each pause doubles while the coordinator fails (KIP-580)."""
LOOKUP_TIMEOUT_MS = 1_000
"""How long a commit waits at a time for the coordinator lookup."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The result of a commit."""

    committed: Offsets
    """The offsets that the coordinator accepted."""
    dropped: Offsets
    """The offsets that were not sent because the member no longer owned them."""
    refused: Offsets
    """The offsets that failed."""
    error: Exception | None = None
    """Why they failed."""


Done = Callable[[CommitOutcome], None]


@dataclass(frozen=True, slots=True)
class _Queued:
    offsets: Offsets
    acquired: Mapping[TopicPartition, int]
    """When each partition was acquired; partitions that were not owned are left out."""
    done: Done


class OwnedCommits:
    """A queue of commits and the coroutine that sends it on kafka-python's thread, one request at a time."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._acquired: dict[TopicPartition, int] = {}
        self._times = 0
        self._left: Mapping[TopicPartition, int] = {}
        self._left_generation: Any = None
        self._back_by = 0.0
        self._queue: deque[_Queued] = deque()
        self._sending = False
        self._changed = threading.Condition()
        self._ended: deque[tuple[Done, CommitOutcome]] = deque()

    def own(self, partitions: Collection[TopicPartition], *, back: bool = True) -> None:
        """Set the partitions that are owned from now on; ``back``: nobody else owned those that were left meanwhile."""
        self._times += 1
        before = {**(self._left if back else {}), **self._acquired}
        self._left = {}
        self._acquired = {each: before.get(each, self._times) for each in partitions}

    def leave(self, partitions: Collection[TopicPartition], wait_s: float) -> None:
        """Note that a join may give these partitions to others. Their commits wait that long for its end."""
        self._left = {each: self._acquired[each] for each in partitions}
        self._acquired = {each: at for each, at in self._acquired.items() if each not in self._left}
        self._left_generation = self._coordinator._generation
        self._back_by = time.monotonic() + wait_s

    @property
    def takes_what_was_left(self) -> bool:
        """Whether the join has not been answered."""
        return self._coordinator._generation is self._left_generation

    def put(self, offsets: Offsets, done: Done | None = None) -> None:
        """Queue a commit; `call_back` calls ``done``."""

        def later(outcome: CommitOutcome) -> None:
            if done is not None:
                self._ended.append((done, outcome))

        self._put(offsets, later)

    def commit(self, offsets: Offsets, timeout_s: float) -> CommitOutcome:
        """Queue a commit and wait for its outcome. Raises its error, or ``KafkaTimeoutError``."""
        outcomes: list[CommitOutcome] = []
        self._put(offsets, outcomes.append)
        with self._changed:
            if not self._changed.wait_for(lambda: bool(outcomes), timeout_s):
                raise KafkaTimeoutError(f"the coordinator did not answer a commit within {timeout_s:g} s")
        if outcomes[0].error is not None:
            raise outcomes[0].error
        return outcomes[0]

    def call_back(self) -> None:
        """Call ``done`` of the finished commits."""
        while self._ended:
            done, outcome = self._ended.popleft()
            done(outcome)

    def flush(self, timeout_s: float) -> bool:
        """Wait until all queued commits are answered, or until the timeout; return whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._sending and not self._queue, timeout_s)

    def _put(self, offsets: Offsets, done: Done) -> None:
        acquired = {**self._left, **self._acquired}
        queued = _Queued(offsets, {each: acquired[each] for each in offsets if each in acquired}, done)
        with self._changed:
            self._queue.append(queued)
            if self._sending:
                return
            self._sending = True
        self._coordinator._manager.call_soon(self._send_all)

    async def _send_all(self) -> None:
        while True:
            with self._changed:
                batch = list(self._queue)
                self._queue.clear()
                if not batch:
                    self._sending = False
                    self._changed.notify_all()
                    return
            # Waiting commits go in one request, with the newest offset of each partition.
            sent, error = await self._send(batch)
            with self._changed:
                for queued, owned in zip(batch, sent, strict=True):
                    queued.done(_outcome(queued.offsets, owned, error))
                self._changed.notify_all()

    def _owned(self, queued: _Queued) -> Offsets:
        left = self._left if self.takes_what_was_left else {}
        acquired = {**left, **self._acquired}
        return {
            each: offset
            for each, offset in queued.offsets.items()
            if each in queued.acquired and acquired.get(each) == queued.acquired[each]
        }

    async def _send(self, batch: list[_Queued]) -> tuple[list[Offsets], Exception | None]:
        """Send owned partitions at each attempt; return those of the last attempt, by commit, and the final error."""
        pause_s = RETRY_S
        while True:
            owned = [self._owned(queued) for queued in batch]
            offsets = {each: offset for part in owned for each, offset in part.items()}
            if not offsets and self._may_come_back(batch):
                await self._coordinator._net.sleep(RETRY_S)
                continue
            if not offsets:
                return owned, None
            try:
                await self._coordinator._send_offset_commit_request(offsets)
                return owned, None
            except Exception as error:  # noqa: BLE001 (clients raise all sorts; the outcome tells which it was)
                if not self._worth_another_try(error):
                    self._coordinator.fenced |= isinstance(error, FencedInstanceIdError)
                    return owned, error
                pause_s = RETRY_S if _joining(error) else min(2 * pause_s, LONGEST_RETRY_S)
            await self._coordinator._net.sleep(pause_s)
            if self._coordinator.coordinator_unknown():
                with contextlib.suppress(KafkaTimeoutError):
                    await self._coordinator._manager.wait_for(self._looked_up(), LOOKUP_TIMEOUT_MS)

    def _may_come_back(self, batch: list[_Queued]) -> bool:
        """Return whether a pending join may give back partitions of these commits."""
        if self._coordinator._heartbeat_closed or time.monotonic() >= self._back_by:
            return False
        left = self._left.items()
        return any(queued.acquired.get(each) == at for queued in batch for each, at in left)

    def _looked_up(self) -> Any:
        """Return a future that is done after the coordinator lookup, even a failed one."""
        done = Future()
        self._coordinator.lookup_coordinator().add_both(done.success)
        return done

    def _worth_another_try(self, error: Exception) -> bool:
        if _joining(error):
            # Between JoinGroup and SyncGroup: the SyncGroup answer is on its way, unless the join has ended.
            task = self._coordinator._join_task
            return self._coordinator.state is MemberState.REBALANCING and task is not None and not task.is_done
        return bool(getattr(error, "retriable", False)) and not self._coordinator._heartbeat_closed


def _joining(error: Exception) -> bool:
    cause = error.args[0] if isinstance(error, CommitFailedError) and error.args else error
    return isinstance(cause, RebalanceInProgressError)


def _outcome(offsets: Offsets, owned: Offsets, error: Exception | None) -> CommitOutcome:
    dropped = {each: offset for each, offset in offsets.items() if each not in owned}
    if error is None:
        return CommitOutcome(committed=owned, dropped=dropped, refused={})
    return CommitOutcome(committed={}, dropped=dropped, refused=owned, error=error)
