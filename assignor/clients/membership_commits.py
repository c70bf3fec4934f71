"""The commits of a member that fetches nothing: in order, with its generation, and only of what it owns when they go.

A classic group's coordinator checks the generation of a commit, not who owns its partitions. So one that was queued
while the coordinator was away, and goes out after the partition has moved, would set the new owner's offset back. Here
each partition of a commit carries when it was acquired, and is dropped where that is not so any more.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.coordinator.base import MemberState  # where every 3.0 has it
from kafka.errors import CommitFailedError, FencedInstanceIdError, KafkaTimeoutError, RebalanceInProgressError
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, TopicPartition

RETRY_S = 0.02
"""Between two tries of a commit that the end of a join may let through."""
LONGEST_RETRY_S = 1.0
"""Where the coordinator is in trouble, each pause is twice the last one, up to this (KIP-580)."""
LOOKUP_TIMEOUT_MS = 1_000
"""How long a commit waits at a time for the group's coordinator to be found."""

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """What became of a commit."""

    committed: Offsets
    """What the coordinator has taken."""
    dropped: Offsets
    """What was not sent, because the member did not own it any more."""
    refused: Offsets
    """What was sent, or should have been, in vain."""
    error: Exception | None = None
    """Why it was in vain."""


Done = Callable[[CommitOutcome], None]


@dataclass(frozen=True, slots=True)
class _Queued:
    offsets: Offsets
    acquired: Mapping[TopicPartition, int]
    """When each partition was acquired; those that were not owned are left out."""
    done: Done


class Commits:
    """The queue, and what sends it: a coroutine on kafka-python's thread, one request at a time."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._acquired: dict[TopicPartition, int] = {}
        self._times = 0
        self._queue: deque[_Queued] = deque()
        self._sending = False
        self._changed = threading.Condition()
        self._ended: deque[tuple[Done, CommitOutcome]] = deque()

    def own(self, partitions: Collection[TopicPartition]) -> None:
        """Take note of what is owned from now on."""
        self._times += 1
        self._acquired = {each: self._acquired.get(each, self._times) for each in partitions}

    def put(self, offsets: Offsets, done: Done | None = None) -> None:
        """Queue a commit; `call_back` calls ``done``."""

        def later(outcome: CommitOutcome) -> None:
            if done is not None:
                self._ended.append((done, outcome))

        self._put(offsets, later)

    def commit(self, offsets: Offsets, timeout_s: float) -> CommitOutcome:
        """Queue a commit and wait for its outcome. Raises its error, and ``KafkaTimeoutError``."""
        outcomes: list[CommitOutcome] = []
        self._put(offsets, outcomes.append)
        with self._changed:
            if not self._changed.wait_for(lambda: bool(outcomes), timeout_s):
                raise KafkaTimeoutError(f"the coordinator has not answered a commit within {timeout_s:g} s")
        if outcomes[0].error is not None:
            raise outcomes[0].error
        return outcomes[0]

    def call_back(self) -> None:
        """Tell those who queued commits what became of them."""
        while self._ended:
            done, outcome = self._ended.popleft()
            done(outcome)

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything that was queued is answered, or so long; whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._sending and not self._queue, timeout_s)

    def _put(self, offsets: Offsets, done: Done) -> None:
        acquired = self._acquired
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
            # What waits goes in one request; of a partition that is in several, the newest offset.
            sent, error = await self._send(batch)
            with self._changed:
                for queued, owned in zip(batch, sent, strict=True):
                    queued.done(_outcome(queued.offsets, owned, error))
                self._changed.notify_all()

    def _owned(self, queued: _Queued) -> Offsets:
        acquired = self._acquired
        return {
            each: offset
            for each, offset in queued.offsets.items()
            if each in queued.acquired and acquired.get(each) == queued.acquired[each]
        }

    async def _send(self, batch: list[_Queued]) -> tuple[list[Offsets], Exception | None]:
        """Send what is owned at each try; what that was at the last, commit by commit, and the error that ended it."""
        pause_s = RETRY_S
        while True:
            owned = [self._owned(queued) for queued in batch]
            offsets = {each: offset for part in owned for each, offset in part.items()}
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

    def _looked_up(self) -> Any:
        """A future that is done when the coordinator was looked up, whatever came of that: the next try tells."""
        done = Future()
        self._coordinator.lookup_coordinator().add_both(done.success)
        return done

    def _worth_another_try(self, error: Exception) -> bool:
        if _joining(error):
            # Between JoinGroup and SyncGroup: the answer to that is on its way, unless the join has ended already.
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
