"""A group member that fetches nothing, for readers without a group or without assignors.

It joins, assigns as the leader, sends heartbeats and commits; another component reads the records. The confluent-kafka
adapter is one such reader. Use it like this::

    class Reader:                                        # a `RebalanceListener`
        def assigned(self, partitions): ...              # begin to read them
        def revoked(self, partitions): ...               # commit, and stop reading them
        def lost(self, partitions): ...                  # stop reading them: others own them already

    settings = {"group_id": "billing", "bootstrap_servers": "localhost:9092"}
    member = Membership(Reader(), planned_member(settings, assignor="weighted"))
    member.subscribe(["flights"])
    while reading:
        member.poll(0.1)                                 # calls the listener, on this thread
        ...
        member.commit({TopicPartition("flights", 0): OffsetAndMetadata(42, "", -1)}, timeout_s=10.0)
    member.close()

Guarantees beyond those of any member:

- Only `Membership.poll` resets the deadline of ``max_poll_interval_ms``. kafka-python's thread sends heartbeats and
  finishes a join that was begun, but begins none.
- The listener is called only in `Membership.poll`. No join begins before it has returned and its queued commits are
  answered. The group waits for that until the deadline, as for any member.
- A commit carries the member's id and generation, so that the broker refuses commits of an evicted member. A commit is
  dropped and reported if its partition is not owned at the time of sending. The broker of a classic group does not
  check ownership. What an eager member has before it joins can be committed until the join has ended for all members.
- A member that is dropped without `Membership.close` leaves its group, and its thread ends.

The member is a ``KafkaConsumer`` that is never polled for records. So it has the features of `kafka_python_consumer`:
every assignor, the group's lag, and the load watch. docs/lab/confluent-kafka-2026-11-23.md compares that with protocol
code of our own. Everything except `Membership.poll` may be called from any thread.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, Unpack
from weakref import WeakMethod, finalize, ref

from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata, TopicPartition

from loadwise.assignor.clients.factory import ConsumerPlan, Options
from loadwise.assignor.clients.held_polls import longest_wait_s
from loadwise.assignor.clients.kafka_python import KafkaPythonConsumer, KafkaPythonLag, planned
from loadwise.assignor.clients.kafka_python.logged_once import log_once
from loadwise.assignor.clients.membership.commits import CommitOutcome, Done, OwnedCommits
from loadwise.assignor.clients.membership.joins import watch_joins
from loadwise.assignor.clients.membership.topics import watch_topics
from loadwise.assignor.clients.membership.version import TRIED
from loadwise.assignor.errors import UnsupportedByClientError
from loadwise.assignor.live.work import BusyTime
from loadwise.installation import pip_install

log = logging.getLogger(__name__)

WAKE_S = 0.05
"""How often to call `poll`, which answers commits and notices joins."""
CLOSING_TIMEOUT_S = 10.0
"""How long leaving the group may take, so that an unreachable coordinator does not block the process's exit."""


class RebalanceListener(Protocol):
    """The reader of the records. `Membership.poll` raises its exceptions once the member's state is consistent."""

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Own these in addition to the current ones. Called after every join, even with none."""
        ...

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit these and stop reading them; others get them once this returns."""
        ...

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """Stop reading these: the member was evicted, so others may own them and they cannot be committed."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """The data that fences a transaction (KIP-447)."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    """Group instance id of a static member."""


def _nothing() -> None:
    """Do nothing: the default ``wake``."""


def weakly(method: Callable[..., None]) -> Callable[..., None]:
    """Call a bound method while its object is alive, so that a thread does not keep a dropped object."""
    there = WeakMethod(method)

    def call(*args: Any) -> None:
        method = there()
        if method is not None:
            method(*args)

    return call


async def _tick(net: Any, member: ref[Membership]) -> None:
    while (there := member()) is not None and not there._closed:
        there._wake()
        del there  # keep the strong reference only briefly
        await net.sleep(WAKE_S)


def _close_elsewhere(consumer: Any) -> None:
    """Leave the group. The garbage collector may run on kafka-python's thread, which must not wait for answers."""
    log.warning("A member of group %s was dropped without close() and now leaves", consumer.config["group_id"])
    close = {"autocommit": False, "timeout_ms": CLOSING_TIMEOUT_S * 1000}
    threading.Thread(target=consumer.close, kwargs=close, name="loadwise-dropped-member", daemon=True).start()


def planned_member(settings: Mapping[str, Any], **options: Unpack[Options]) -> ConsumerPlan[KafkaPythonLag]:
    """Check a member's settings, which are kafka-python's, and choose its assignor; nothing connects yet.

    Settings about fetching have no effect; those about auto-commit say how often the caller commits. Raises what
    `loadwise.kafka_python_consumer` raises, and `UnsupportedByClientError` for a version of kafka-python that was not
    tested.
    """
    if not TRIED.includes_installed:
        raise UnsupportedByClientError(
            f"a member that fetches nothing uses private parts of kafka-python; version {TRIED.installed} was not"
            f" tested ({TRIED.range} were); install one of those: {pip_install('confluent-kafka')}"
        )
    plan = planned(settings, **options)
    return replace(plan, config={**plan.config, "enable_auto_commit": False})


class Membership:
    """One member of a classic group; the module's docstring has its guarantees.

    ``wake`` is called on the other thread every `WAKE_S`, and at once when `poll` has something to do. It is for
    callers that do not check a clock for each record. Raises what ``KafkaConsumer`` raises.
    """

    def __init__(
        self, listener: RebalanceListener, plan: ConsumerPlan[KafkaPythonLag], wake: Callable[[], None] | None = None
    ) -> None:
        self._listener = listener
        self._wake = wake or _nothing
        self._consumer = KafkaPythonConsumer(plan)
        self._coordinator = self._consumer._coordinator
        self._cluster = self._coordinator._cluster
        self._topic_errors: Mapping[str, int] = {}
        watch_topics(self._cluster, weakly(self._on_topics))
        self._owned: frozenset[TopicPartition] = frozenset()
        self._unbroken = True  # the generation was not lost since the join was prepared
        self._prepared = False  # the listener has revoked what the next join may take away
        self._joined = False  # a join has ended, and the listener was not called with its assignment yet
        self._lost = False  # the generation is lost, and the listener was not called yet
        self._closed = False
        self.polled_late = False
        """Whether the member left its group because `poll` came too late; the caller resets it after reporting."""
        self._commits = OwnedCommits(self._coordinator)
        watch_joins(
            self._coordinator,
            joined=weakly(self._on_joined),
            lost=weakly(self._on_lost),
            due=weakly(self._on_due),
        )
        self._dropped = finalize(self, _close_elsewhere, self._consumer)
        self._dropped.atexit = False
        net, member = self._coordinator._net, ref(self)
        log_once(net._io_thread)
        net.call_soon_threadsafe(lambda: _tick(net, member))

    @property
    def busy(self) -> BusyTime | None:
        """Measures how long the application works on its records; None if that is not needed."""
        leader = self._consumer._leader
        return None if leader is None else leader.busy

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the listener was assigned and has not revoked."""
        return self._owned

    @property
    def joining(self) -> bool:
        """Whether a join is in progress, or due at the next `poll`."""
        return bool(self._lost or self._prepared or self._joined or self._coordinator.need_rejoin())

    @property
    def joins_eagerly(self) -> bool:
        """Whether the join that is due or in progress takes all partitions first."""
        return self._prepared and not self._consumer.assignor.participant.cooperative

    @property
    def unbroken(self) -> bool:
        """Whether nobody owned in between what was revoked for a join and assigned by it again."""
        return self._unbroken and bool(self._coordinator.follows)

    @property
    def commits_what_it_left(self) -> bool:
        """Whether what was revoked for a join can still be committed, because not all members have joined."""
        return self._commits.takes_what_was_left

    @property
    def longest_wait_s(self) -> float:
        """For how many seconds a poll of a program that commits by hand may wait for an eager join."""
        return longest_wait_s(self._coordinator.config["max_poll_interval_ms"])

    @property
    def topic_errors(self) -> Mapping[str, int]:
        """The subscribed topics that cannot be read, by the newest metadata, with Kafka's error codes."""
        subscription = self._coordinator._subscription
        if subscription.subscribed_pattern:
            return {}
        errors, topics = self._topic_errors, subscription.subscription or ()
        return {topic: code for topic, code in errors.items() if topic in topics}

    def subscribe(self, topics: Collection[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Subscribe to topics; the next `poll` joins. ``pattern`` matches from the beginning of a name."""
        try:
            self._consumer.subscribe(topics=list(topics), pattern=pattern)
        except IllegalStateError:  # kafka-python requires unsubscribing between names and a pattern
            self.unsubscribe()
            self._consumer.subscribe(topics=list(topics), pattern=pattern)
        self._wake()

    def unsubscribe(self) -> None:
        """Revoke everything through the listener, and leave the group."""
        self._give_up()
        self._consumer.unsubscribe()
        self._prepared = self._joined = False

    def poll(self, timeout_s: float = 0.0) -> None:
        """Stay in the group and take part in its rebalances; wait up to ``timeout_s`` for a join in progress.

        Raises kafka-python's errors if the group refuses the member, and the listener's exceptions.
        """
        self._coordinator.poll_heartbeat()
        self._commits.call_back()
        if self._lost:
            self._lose()
        self._coordinator.check_fenced()
        if not self._coordinator._subscription.partitions_auto_assigned():
            return
        if self._coordinator.need_rejoin():
            if not self._prepared:
                self._prepare(timeout_s)
            self._coordinator.ensure_active_group(timeout_ms=timeout_s * 1000)
        if self._joined and self._lost:  # lost an earlier generation than the joined one
            self._lose()
        if self._joined:
            self._take()

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_s: float) -> CommitOutcome:
        """Commit after all queued commits, and wait for the answer.

        Raises kafka-python's error if the coordinator refuses, ``KafkaTimeoutError`` if it does not answer.
        """
        return self._commits.commit(offsets, timeout_s)

    def commit_async(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], done: Done | None = None) -> None:
        """Queue a commit; ``done(outcome)`` is called in a later `poll`, or in `close`."""
        self._commits.put(offsets, done)

    def metadata(self) -> GroupMetadata:
        """Return the member's group metadata. Raises ``IllegalStateError`` while it has no generation."""
        generation = self._coordinator.generation_if_stable()
        if generation is None or self._lost:
            raise IllegalStateError("the member has no generation of its group now: it is joining, or was evicted")
        return GroupMetadata(
            group_id=self._coordinator.group_id,
            generation=generation.generation_id,
            member_id=generation.member_id,
            instance_id=self._coordinator.group_instance_id,
        )

    def close(self) -> None:
        """Revoke everything through the listener, and leave; a static member stays until its session expires."""
        if self._closed:
            return
        self._closed = True
        self._dropped.detach()
        try:
            self._give_up(CLOSING_TIMEOUT_S)
        finally:
            self._consumer.close(autocommit=False, timeout_ms=CLOSING_TIMEOUT_S * 1000)
            self._commits.call_back()

    def _on_joined(self) -> None:
        self._joined = True

    def _on_lost(self, polled_late: bool) -> None:
        self._joined = False  # that join's assignment is void; a later join sets it again
        self._lost = True
        self.polled_late |= polled_late and not self._closed

    def _on_topics(self, errors: Mapping[str, int]) -> None:
        if errors != self._topic_errors:
            self._topic_errors = errors
            self._wake()

    def _on_due(self) -> None:
        self._wake()

    def _prepare(self, timeout_s: float) -> None:
        """Revoke what this join may take away, before it begins."""
        if self._coordinator._subscription.subscribed_pattern:
            # As in kafka-python's own poll: the leader must not assign by outdated topics.
            update = self._cluster.request_update()
            deadline = time.monotonic() + max(timeout_s, 1.0)
            while not update.is_done and time.monotonic() < deadline:
                time.sleep(0.001)  # between two checks
        topics = self._coordinator._subscription.subscription or ()
        eager = not self._consumer.assignor.participant.cooperative
        going = frozenset(each for each in self._owned if eager or each.topic not in topics)
        self._prepared = self._unbroken = True
        if going:
            self._revoke(going, joins=True)

    def _take(self) -> None:
        """Call the listener with the result of a join."""
        self._joined = self._prepared = False
        given = frozenset(self._consumer.assignment())
        if self._lost:  # just now: the assignment is void again
            self._lose()
            return
        revoked, added = self._owned - given, given - self._owned
        try:
            if revoked:
                self._revoke(revoked)
        finally:
            self._own(self._owned | added, back=self.unbroken)
            self._listener.assigned(added)

    def _revoke(
        self, partitions: frozenset[TopicPartition], timeout_s: float | None = None, *, joins: bool = False
    ) -> None:
        """Let the listener revoke partitions; wait that long for commits, or until the poll deadline."""
        try:
            self._listener.revoked(partitions)
        finally:
            if timeout_s is None:
                timeout_s = self._coordinator.config["max_poll_interval_ms"] / 1000
            if not self._commits.flush(timeout_s):
                log.warning("Commits were not answered within %g s: records may be read again", timeout_s)
            if joins:
                self._owned -= partitions
                self._commits.leave(partitions, self.longest_wait_s)
            else:
                self._own(self._owned - partitions)

    def _lose(self) -> None:
        self._lost = self._unbroken = False
        partitions = self._owned
        self._own(frozenset(), back=False)
        if partitions:
            log.warning("Group %s has evicted this member, which lost %s", self._coordinator.group_id, partitions)
            self._listener.lost(partitions)

    def _give_up(self, timeout_s: float | None = None) -> None:
        if self._lost:
            self._lose()
        elif self._owned:
            self._revoke(self._owned, timeout_s)

    def _own(self, partitions: frozenset[TopicPartition], *, back: bool = True) -> None:
        self._owned = partitions
        self._commits.own(partitions, back=back)
