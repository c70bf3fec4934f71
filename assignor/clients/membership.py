"""A member of a group that fetches nothing: for readers that have no group of their own, or one without assignors.

It joins, answers as the leader, sends heartbeats and commits; somebody else reads the records. The confluent-kafka
adapter is one such reader. Another is used like this::

    class Reader:                                        # a `RebalanceListener`
        def assigned(self, partitions): ...              # begin to read them
        def revoked(self, partitions): ...               # commit, and stop reading them
        def lost(self, partitions): ...                  # stop reading them: others own them already

    member = Membership(Reader(), group_id="billing", bootstrap_servers="localhost:9092", assignor="weighted")
    member.subscribe(["flights"])
    while reading:
        member.poll(0.1)                                 # calls the listener, on this thread
        ...
        member.commit({TopicPartition("flights", 0): OffsetAndMetadata(42, "", -1)}, timeout_s=10.0)
    member.close()

What it promises, beside what any member does:

- `Membership.poll` alone feeds the deadline of ``max_poll_interval_ms``. The other thread, kafka-python's, sends
  heartbeats and takes a join that was begun to its end, but begins none.
- The listener is called in `Membership.poll` and nowhere else, and no join begins before it has returned and the
  commits that it queued are answered. The group waits for that until the deadline, as for any member.
- A commit carries the member's id and generation, so that the broker refuses one of a member that it has put out. A
  commit of a partition that is not owned when it would be sent is dropped and reported: the broker of a classic group
  does not check who owns what.

- A member that is dropped without `Membership.close` leaves its group, and its thread ends.

The member is a ``KafkaConsumer`` that is never polled for records, so it has what `kafka_consumer` has: every strategy,
the group's lag, and what watches the load. docs/lab/confluent-kafka-2026-11-23.md compares that with
protocol code of our own. Everything but `Membership.poll` may be called from any thread.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from weakref import WeakMethod, finalize, ref

from loadwise.assignor.clients.kafka_python import TRIED as TRIED_FOR_CONSUMERS
from loadwise.assignor.clients.kafka_python import kafka_consumer
from loadwise.assignor.clients.logged_once import log_once
from loadwise.assignor.clients.membership_commits import CommitOutcome, Commits, Done
from loadwise.assignor.clients.membership_joins import watch_joins
from loadwise.assignor.clients.membership_topics import watch_topics
from loadwise.assignor.errors import MissingClientError, UnsupportedByClientError
from loadwise.assignor.live.work import BusyTime
from loadwise.installation import pip_install

try:
    from kafka.errors import IllegalStateError
    from kafka.structs import OffsetAndMetadata, TopicPartition
except ImportError as error:
    raise MissingClientError(f"kafka-python is not installed; get it with: {pip_install('kafka-python')}") from error

log = logging.getLogger(__name__)

TRIED = replace(TRIED_FOR_CONSUMERS, oldest=(3, 0, 12))
"""The versions whose private parts this was tested with."""
WAKE_S = 0.05
"""How often `poll` should be called: commits are answered and joins are noticed in it."""
CLOSING_TIMEOUT_S = 10.0
"""How long leaving the group may take: an unreachable coordinator must not keep a process from ending."""


class RebalanceListener(Protocol):
    """Who reads the records. An exception leaves `Membership.poll` once the member's own state is in order."""

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """These are owned from now on, beside what is owned already. Called after every join, also with none."""
        ...

    def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """These go to others once this returns: commit them and stop reading them."""
        ...

    def lost(self, partitions: frozenset[TopicPartition]) -> None:
        """The member was put out of its group, so others may own these already: they cannot be committed."""
        ...


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """What a transaction is fenced by (KIP-447)."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    """Group instance id of a static member."""


def _nothing() -> None:
    """Wake nobody."""


def weakly(method: Callable[..., None]) -> Callable[..., None]:
    """Call a bound method as long as its object is there: a thread must not keep what its owner has dropped."""
    there = WeakMethod(method)

    def call(*args: Any) -> None:
        method = there()
        if method is not None:
            method(*args)

    return call


async def _tick(net: Any, member: ref[Membership]) -> None:
    while (there := member()) is not None and not there._closed:
        there._wake()
        del there  # only for the moment
        await net.sleep(WAKE_S)


def _close_elsewhere(consumer: Any) -> None:
    """Leave the group. Garbage is collected on any thread, kafka-python's too, where nothing may wait for an answer."""
    log.warning("A member of the group %s was dropped without close(); it leaves", consumer.config["group_id"])
    close = {"autocommit": False, "timeout_ms": CLOSING_TIMEOUT_S * 1000}
    threading.Thread(target=consumer.close, kwargs=close, name="loadwise-dropped-member", daemon=True).start()


class Membership:
    """One member of a classic group; see the module for what it promises.

    ``wake`` is called on the other thread every `WAKE_S`, and at once when `poll` has something to do: for callers that
    have no clock of their own to look at beside each record. ``options`` are those of
    `loadwise.assignor.clients.kafka_python.kafka_consumer`, without topics: the group, the assignor, and kafka-python's
    own settings, of which those about fetching have no effect. Raises what it raises.
    """

    def __init__(self, listener: RebalanceListener, wake: Callable[[], None] | None = None, **options: Any) -> None:
        if not TRIED.includes_installed:
            raise UnsupportedByClientError(
                f"a member that fetches nothing takes private parts of kafka-python, and version {TRIED.installed} was"
                f" never tried ({'.'.join(map(str, TRIED.oldest))} to {'.'.join(map(str, TRIED.newest))} were);"
                f" install one of those: {pip_install('confluent-kafka')}"
            )
        self._listener = listener
        self._wake = wake or _nothing
        self._consumer = kafka_consumer(**options, enable_auto_commit=False)
        self._coordinator = self._consumer._coordinator
        self._cluster = self._coordinator._cluster
        self._topic_errors: Mapping[str, int] = {}
        watch_topics(self._cluster, weakly(self._on_topics))
        self._owned: frozenset[TopicPartition] = frozenset()
        self._prepared = False  # the listener has given up what the next join may take away
        self._joined = False  # a join has ended whose assignment the listener has not heard of
        self._lost = False  # the generation is gone, and the listener has not heard of it
        self._closed = False
        self.polled_late = False
        """Whether the member has left its group because `poll` came too late; who tells the application unsets it."""
        self._commits = Commits(self._coordinator)
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
    def assignor(self) -> Any:
        """The assignor of kafka-python's consumer, which is what watches the load and explains itself."""
        return self._consumer.assignor

    @property
    def busy(self) -> BusyTime | None:
        """What to tell how long the application works on its records; None where nobody wants to know."""
        leader = self._consumer._leader
        return None if leader is None else leader.busy

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the listener was given and has not given back."""
        return self._owned

    @property
    def joining(self) -> bool:
        """Whether a join is under way, or due at the next `poll`."""
        return bool(self._lost or self._prepared or self._joined or self._coordinator.need_rejoin())

    @property
    def topic_errors(self) -> Mapping[str, int]:
        """The subscribed topics that cannot be read, as the newest metadata tells, with Kafka's error codes."""
        subscription = self._coordinator._subscription
        if subscription.subscribed_pattern:
            return {}
        errors, topics = self._topic_errors, subscription.subscription or ()
        return {topic: code for topic, code in errors.items() if topic in topics}

    def subscribe(self, topics: Collection[str] = (), *, pattern: str | re.Pattern[str] | None = None) -> None:
        """Choose topics to own partitions of; the next `poll` joins. ``pattern`` matches from a name's beginning."""
        try:
            self._consumer.subscribe(topics=list(topics), pattern=pattern)
        except IllegalStateError:  # from names to a pattern or back: kafka-python wants an end of the former first
            self.unsubscribe()
            self._consumer.subscribe(topics=list(topics), pattern=pattern)
        self._wake()

    def unsubscribe(self) -> None:
        """Give everything up, by the listener, and leave the group."""
        self._give_up()
        self._consumer.unsubscribe()
        self._prepared = self._joined = False

    def poll(self, timeout_s: float = 0.0) -> None:
        """Stay in the group and take part in its rebalances; waits so long for a join that is under way.

        Raises kafka-python's errors where the group refuses the member, and what the listener raises.
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
        if self._joined and self._lost:  # an earlier generation than the one that was joined
            self._lose()
        if self._joined:
            self._take()

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_s: float) -> CommitOutcome:
        """Commit, after whatever was queued before, and wait for the answer.

        Raises kafka-python's error where the coordinator refuses, ``KafkaTimeoutError`` where it does not answer.
        """
        return self._commits.commit(offsets, timeout_s)

    def commit_async(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], done: Done | None = None) -> None:
        """Queue a commit; ``done(outcome)`` is called in a later `poll`, or in `close`."""
        self._commits.put(offsets, done)

    def metadata(self) -> GroupMetadata:
        """What the group knows the member by. Raises ``IllegalStateError`` while it is of no generation."""
        generation = self._coordinator.generation_if_stable()
        if generation is None or self._lost:
            raise IllegalStateError("the member is of no generation of its group now: it is joining, or was put out")
        return GroupMetadata(
            group_id=self._coordinator.group_id,
            generation=generation.generation_id,
            member_id=generation.member_id,
            instance_id=self._coordinator.group_instance_id,
        )

    def close(self) -> None:
        """Give everything up, by the listener, and leave the group; a static member stays until its session ends."""
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
        self._joined = False  # what that join gave is gone; a later one sets it again
        self._lost = True
        self.polled_late |= polled_late and not self._closed

    def _on_topics(self, errors: Mapping[str, int]) -> None:
        if errors != self._topic_errors:
            self._topic_errors = errors
            self._wake()

    def _on_due(self) -> None:
        self._wake()

    def _prepare(self, timeout_s: float) -> None:
        """Give up what this join may take away, before it begins."""
        if self._coordinator._subscription.subscribed_pattern:
            # As kafka-python's own poll does: the leader must not assign by topics that were there long ago.
            update = self._cluster.request_update()
            deadline = time.monotonic() + max(timeout_s, 1.0)
            while not update.is_done and time.monotonic() < deadline:
                time.sleep(0.001)  # between two looks
        topics = self._coordinator._subscription.subscription or ()
        eager = not self._consumer.assignor.participant.cooperative
        going = frozenset(each for each in self._owned if eager or each.topic not in topics)
        self._prepared = True
        if going:
            self._revoke(going)

    def _take(self) -> None:
        """Tell the listener what came of a join."""
        self._joined = self._prepared = False
        given = frozenset(self._consumer.assignment())
        if self._lost:  # in this moment: what was given is gone again
            self._lose()
            return
        revoked, added = self._owned - given, given - self._owned
        try:
            if revoked:
                self._revoke(revoked)
        finally:
            self._own(self._owned | added)
            self._listener.assigned(added)

    def _revoke(self, partitions: frozenset[TopicPartition], timeout_s: float | None = None) -> None:
        """Have partitions given up; waits for commits that long, or until the group would put the member out."""
        try:
            self._listener.revoked(partitions)
        finally:
            if timeout_s is None:
                timeout_s = self._coordinator.config["max_poll_interval_ms"] / 1000
            if not self._commits.flush(timeout_s):
                log.warning("Commits were not answered within %g s: others may read records again", timeout_s)
            self._own(self._owned - partitions)

    def _lose(self) -> None:
        self._lost = False
        partitions = self._owned
        self._own(frozenset())
        if partitions:
            log.warning("The group %s has put this member out: it has lost %s", self._coordinator.group_id, partitions)
            self._listener.lost(partitions)

    def _give_up(self, timeout_s: float | None = None) -> None:
        if self._lost:
            self._lose()
        elif self._owned:
            self._revoke(self._owned, timeout_s)

    def _own(self, partitions: frozenset[TopicPartition]) -> None:
        self._owned = partitions
        self._commits.own(partitions)
