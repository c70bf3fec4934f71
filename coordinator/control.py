"""Controls of a running coordinator: its groups and its clock.

Each action runs on the coordinator's event loop; ``run`` carries it there from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from loadwise.coordinator.clock import Clock
from loadwise.coordinator.groups.service import operations, views
from loadwise.coordinator.server import Server

T = TypeVar("T")

MAX_STEP_MS = 366 * 24 * 3600 * 1000
"""Longest step of the clock; everything due within the step happens before it returns."""


class Run(Protocol):
    """Runs an action on the coordinator's event loop and returns its result."""

    def __call__(self, action: Callable[[], T], /) -> T:
        """Run the action and wait for it."""


class GroupControl:
    """Shows and changes groups. A member is named by its member id or group instance id.

    Methods raise `NoSuchGroupError`, `NoSuchMemberError` and `NotRunningError`.
    """

    def __init__(self, server: Callable[[], Server], run: Run) -> None:
        self._server = server
        self._run = run

    def all(self) -> Sequence[views.GroupView]:
        """Return every group with its members, lag and history, sorted by group id."""
        return self._run(lambda: views.view_groups(self._server().cluster.groups, self._server().cluster.topics))

    def get(self, group_id: str) -> views.GroupView:
        """Return one group with its members, lag and history."""
        return self._run(lambda: self._get(group_id))

    def kick(self, group_id: str, member: str) -> None:
        """Remove a member, as an administrator's LeaveGroup does."""
        self._run(lambda: self._server().operate(lambda groups, now: operations.kick(groups, group_id, member, now)))

    def expire_session(self, group_id: str, member: str) -> None:
        """End a member's session, as if its heartbeats had stopped for the session timeout."""
        self._run(
            lambda: self._server().operate(lambda groups, now: operations.expire_session(groups, group_id, member, now))
        )

    def rebalance(self, group_id: str) -> None:
        """Make all members rejoin; does nothing in a group without members."""
        self._run(lambda: self._server().operate(lambda groups, now: operations.force_rebalance(groups, group_id, now)))

    def _get(self, group_id: str) -> views.GroupView:
        cluster = self._server().cluster
        operations.existing_group(cluster.groups, group_id)
        return views.view_group(cluster.groups, cluster.topics, group_id)


class ClockControl:
    """Stops and steps the clock that sessions, rebalances, long polls and delays use.

    Every method except the properties raises `NotRunningError`.
    """

    def __init__(self, clock: Clock, server: Callable[[], Server], run: Run) -> None:
        self._clock = clock
        self._server = server
        self._run = run

    @property
    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""
        return self._clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        """Return whether the clock is frozen."""
        return self._clock.is_frozen

    def freeze(self) -> None:
        """Stop the clock. No session or long poll ends until it is stepped or resumed."""
        self._run(lambda: self._server().freeze())

    def step(self, ms: int) -> None:
        """Advance the clock, frozen or not; everything due within the step happens at its own time.

        Raises ValueError for a negative step, and for one of more than `MAX_STEP_MS`.
        """
        if ms < 0:
            raise ValueError(f"a step of {ms} ms: the clock cannot go back")
        if ms > MAX_STEP_MS:
            raise ValueError(f"a step of {ms} ms: the limit is {MAX_STEP_MS:,} ms, which is a year")
        self._run(lambda: self._server().step(ms))

    def resume(self) -> None:
        """Let the clock run on from its current time."""
        self._run(lambda: self._server().resume())
