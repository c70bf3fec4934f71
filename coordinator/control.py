"""What a test can do to a running coordinator: act on its groups, stop and step its clock.

Each action runs where the coordinator runs; ``run`` carries it there from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from loadwise.coordinator.clock import Clock
from loadwise.coordinator.groups.service import operations, views
from loadwise.coordinator.server import Server

T = TypeVar("T")

MAX_STEP_MS = 366 * 24 * 3600 * 1000
"""Longest step of the clock: all that is due on the way happens before it returns."""


class Run(Protocol):
    """Runs an action where the coordinator runs, and answers with what it answers."""

    def __call__(self, action: Callable[[], T], /) -> T:
        """Run it and wait for it."""


class GroupControl:
    """Shows groups and acts on them. A member goes by its member id or its group instance id.

    What needs a group or a member raises `NoSuchGroupError`, `NoSuchMemberError` and `NotRunningError`.
    """

    def __init__(self, server: Callable[[], Server], run: Run) -> None:
        self._server = server
        self._run = run

    def all(self) -> Sequence[views.GroupView]:
        """Every group with its members, lag and history, by group id."""
        return self._run(lambda: views.view_groups(self._server().cluster.groups, self._server().cluster.topics))

    def get(self, group_id: str) -> views.GroupView:
        """One group with its members, lag and history."""
        return self._run(lambda: self._get(group_id))

    def kick(self, group_id: str, member: str) -> None:
        """Remove a member, as an administrator's LeaveGroup does."""
        self._run(lambda: self._server().operate(lambda groups, now: operations.kick(groups, group_id, member, now)))

    def expire_session(self, group_id: str, member: str) -> None:
        """End a member's session, as if its heartbeats had stayed away for the session timeout."""
        self._run(
            lambda: self._server().operate(lambda groups, now: operations.expire_session(groups, group_id, member, now))
        )

    def rebalance(self, group_id: str) -> None:
        """Make all members join again; nothing happens in a group without members."""
        self._run(lambda: self._server().operate(lambda groups, now: operations.force_rebalance(groups, group_id, now)))

    def _get(self, group_id: str) -> views.GroupView:
        cluster = self._server().cluster
        operations.existing_group(cluster.groups, group_id)
        return views.view_group(cluster.groups, cluster.topics, group_id)


class ClockControl:
    """Stops and steps the coordinator's clock, by which sessions, rebalances, long polls and delays end.

    Every method but the properties raises `NotRunningError`.
    """

    def __init__(self, clock: Clock, server: Callable[[], Server], run: Run) -> None:
        self._clock = clock
        self._server = server
        self._run = run

    @property
    def now_ms(self) -> int:
        """The time in milliseconds since 1970."""
        return self._clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still."""
        return self._clock.is_frozen

    def freeze(self) -> None:
        """Stop the clock: no session expires, no long poll ends, until it is stepped or resumed."""
        self._run(lambda: self._server().freeze())

    def step(self, ms: int) -> None:
        """Set the clock forward, frozen or not, with everything on the way happening at its own time.

        Raises ValueError for a step back, and for one of more than `MAX_STEP_MS`.
        """
        if ms < 0:
            raise ValueError(f"a step of {ms} ms: the clock never goes back")
        if ms > MAX_STEP_MS:
            raise ValueError(f"a step of {ms} ms: one step is at most {MAX_STEP_MS:,} ms, which is a year")
        self._run(lambda: self._server().step(ms))

    def resume(self) -> None:
        """Let the clock run on from where it stands."""
        self._run(lambda: self._server().resume())
