"""Controls of a running coordinator: its cluster, its groups and its clock.

Each action runs on the coordinator's event loop; ``run`` carries it there from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Protocol, TypeVar

from loadwise.coordinator.embedding.embedded import Embedded
from loadwise.coordinator.errors import NotRunningError
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.service import operations, views
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Snapshot

T = TypeVar("T")

MAX_STEP_MS = 366 * 24 * 3600 * 1000
"""Longest step of the clock; everything due within the step happens before it returns."""


class Run(Protocol):
    """Runs an action on the coordinator's event loop and returns its result."""

    def __call__(self, action: Callable[[], T], /) -> T:
        """Run the action and wait for it."""


class ClusterControl:
    """A cluster as its user sees and changes it."""

    def __init__(self, embedded: Embedded, run: Run) -> None:
        self._embedded = embedded
        self._run = run
        self.groups = GroupControl(embedded, run)
        """Shows groups, removes members, ends sessions and forces rebalances."""
        self.clock = ClockControl(embedded, run)
        """Freezes, steps and resumes the coordinator's clock."""

    def __repr__(self) -> str:
        """Return the class and where it listens."""
        try:
            where = f"at {self.bootstrap_servers}"
        except NotRunningError:
            where = "that does not run"
        return f"<{type(self).__name__} {where}>"

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers, such as ``127.0.0.1:43567``, separated by commas.

        Raises `NotRunningError` before the start.
        """
        return self._embedded.bootstrap_servers

    @property
    def http_url(self) -> str:
        """Return the URL of the HTTP API, such as ``http://127.0.0.1:43568``.

        Raises `NotRunningError` before the start, and without ``http``.
        """
        return self._embedded.http_url

    @property
    def http_token(self) -> str:
        """Return the token that HTTP requests must send; empty if there is no HTTP."""
        return self._embedded.http_token

    @property
    def faults(self) -> Faults:
        """Return the faults that clients get, which may be used from any thread.

        ``coordinator.faults.answer("Heartbeat", error="REBALANCE_IN_PROGRESS")``
        """
        return self._embedded.faults

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `BadTopicError` if it exists already or is not valid."""
        self._change(lambda cluster: cluster.create_topic(name, partitions))

    def move_leader(self, topic: str, partition: int, to: int | None = None) -> None:
        """Make another replica the leader of a partition, with a new leader epoch.

        ``to`` None picks the replica after the leader. Raises `BadClusterError` if there is no such partition or
        replica.
        """
        self._change(lambda cluster: leadership.move_leader(cluster, topic, partition, to))

    def move_coordinator(self, group_id: str, to: int | None = None) -> None:
        """Make another broker the coordinator of a group; ``to`` None picks the next broker.

        See `leadership.move_coordinator`. Raises `BadClusterError` if there is no such broker.
        """
        self._change(lambda cluster: leadership.move_coordinator(cluster, group_id, to))

    def move_transaction_coordinator(self, transactional_id: str, to: int | None = None) -> None:
        """Make another broker the transaction coordinator of an id; ``to`` None picks the next.

        Raises `BadClusterError` if there is no such broker.
        """
        self._change(lambda cluster: leadership.move_transaction_coordinator(cluster, transactional_id, to))

    def drop_leader(self, topic: str, partition: int) -> None:
        """Leave a partition without a leader until `move_leader`.

        Raises `BadClusterError` if there is no such partition.
        """
        self._change(lambda cluster: leadership.drop_leader(cluster, topic, partition))

    def set_isr(self, topic: str, partition: int, brokers: Sequence[int]) -> None:
        """Set the in-sync replicas of a partition; setting all of them lets the ISR grow again.

        With fewer than ``min.insync.replicas``, a producer with acks=all gets NOT_ENOUGH_REPLICAS. What other producers
        write becomes readable once enough replicas are in sync. Raises `BadClusterError` if the ISR is not valid, for
        example without the leader.
        """
        self._change(lambda cluster: leadership.set_isr(cluster, topic, partition, brokers))

    def stop_broker(self, broker: int) -> None:
        """Stop a broker as if it was killed; it closes all connections, and new ones at once.

        Other brokers take over its partitions, groups and transactions. A partition without another in-sync replica has
        no leader. Raises `BadClusterError` if there is no such broker, or it is stopped already.
        """
        self._run(lambda: self._embedded.change(lambda cluster: leadership.stop_broker(cluster, broker), stops=broker))

    def start_broker(self, broker: int) -> None:
        """Start a stopped broker; its replicas are in sync again.

        It also leads the partitions that had no leader without it. Raises `BadClusterError` if there is no such broker,
        or it runs already.
        """
        self._change(lambda cluster: leadership.start_broker(cluster, broker))

    def snapshot(self) -> Snapshot:
        """Return the cluster's current state; `restore` accepts it any number of times.

        It contains topics, configs, records, groups, committed offsets, transactions, quotas, ACLs and SCRAM users. No
        byte of a record is copied. It contains no faults, clock, connections or current rebalances.
        """
        return self._run(self._embedded.cluster.snapshot)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of this coordinator, or of another one with as many brokers.

        All connections are closed. Clients reconnect, and find the state of a restarted Kafka: members stay in their
        groups until their sessions end, a rebalance starts again, and an open transaction continues or times out. No
        producer gets an id and epoch that were used before. Faults and clock stay as they are.

        Raises `BadClusterError` if the snapshot needs brokers that do not exist; then nothing has changed.
        """
        self._run(lambda: self._embedded.restore(snapshot))

    def _change(self, change: Callable[[Cluster], None]) -> None:
        self._run(lambda: self._embedded.change(change))


class GroupControl:
    """Shows and changes groups. A member is named by its member id or group instance id.

    Methods raise `NoSuchGroupError`, `NoSuchMemberError` and `NotRunningError`.
    """

    def __init__(self, embedded: Embedded, run: Run) -> None:
        self._embedded = embedded
        self._run = run

    def all(self) -> Sequence[views.GroupView]:
        """Return every group with its members, lag and history, sorted by group id."""
        return self._run(self._all)

    def get(self, group_id: str) -> views.GroupView:
        """Return one group with its members, lag and history."""
        return self._run(lambda: self._get(group_id))

    def kick(self, group_id: str, member: str) -> None:
        """Remove a member, as an administrator's LeaveGroup does."""
        self._operate(lambda groups, now: operations.kick(groups, group_id, member, now))

    def expire_session(self, group_id: str, member: str) -> None:
        """End a member's session, as if its heartbeats had stopped for the session timeout."""
        self._operate(lambda groups, now: operations.expire_session(groups, group_id, member, now))

    def rebalance(self, group_id: str) -> None:
        """Make all members rejoin; does nothing in a group without members."""
        self._operate(lambda groups, now: operations.force_rebalance(groups, group_id, now))

    def _operate(self, operation: Callable[[Groups, int], Iterable[Reply]]) -> None:
        self._run(lambda: self._embedded.server.operate(operation))

    def _all(self) -> list[views.GroupView]:
        cluster = self._embedded.server.cluster
        return views.view_groups(cluster.groups, cluster.topics)

    def _get(self, group_id: str) -> views.GroupView:
        cluster = self._embedded.server.cluster
        operations.existing_group(cluster.groups, group_id)
        return views.view_group(cluster.groups, cluster.topics, group_id)


class ClockControl:
    """Stops and steps the clock that sessions, rebalances, long polls and delays use.

    Every method except the properties raises `NotRunningError`.
    """

    def __init__(self, embedded: Embedded, run: Run) -> None:
        self._embedded = embedded
        self._run = run

    @property
    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return self._embedded.clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        """Return whether the clock is frozen."""
        return self._embedded.clock.is_frozen

    def freeze(self) -> None:
        """Stop the clock. No session or long poll ends until it is stepped or resumed."""
        self._run(lambda: self._embedded.server.freeze())  # noqa: PLW0108  (not before the loop runs it)

    def step(self, ms: int) -> None:
        """Advance the clock, frozen or not; everything due within the step happens at its own time.

        Raises `TypeError` for anything else than a whole number, `ValueError` for less than 0 or over `MAX_STEP_MS`.
        """
        if not isinstance(ms, Integral) or isinstance(ms, bool):
            raise TypeError(f"a step of {ms!r}; it must be a whole number of milliseconds")
        if ms < 0:
            raise ValueError(f"a step of {ms} ms: the clock cannot go back")
        if ms > MAX_STEP_MS:
            raise ValueError(f"a step of {ms} ms: the limit is {MAX_STEP_MS:,} ms, which is a year")
        self._run(lambda: self._embedded.server.step(ms))

    def resume(self) -> None:
        """Let the clock run on from its current time."""
        self._run(lambda: self._embedded.server.resume())  # noqa: PLW0108  (likewise)
