"""Let kafka-python's coordinator finish joins without its consumer's ``poll``.

`Membership` begins joins and takes their results. User code may run for long in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka.coordinator.base import Generation
from kafka.errors import FencedInstanceIdError


def watch_joins(
    coordinator: Any,
    *,
    joined: Callable[[], None],
    lost: Callable[[bool], None],
    due: Callable[[], None],
) -> None:
    """Call back from a ``ConsumerCoordinator``'s own thread when the member's state changes.

    ``joined``: an assignment was taken. ``lost``: the member has no generation any more, and whether that is because
    of a late poll. ``due``: a join should begin, or was answered, or the member is fenced.
    """
    _keep_the_poll_deadline(coordinator.heartbeat)
    join_and_sync = coordinator._do_join_and_sync_async
    on_join_complete = coordinator._on_join_complete_async
    reset_generation = coordinator.reset_generation
    request_rejoin = coordinator.request_rejoin
    send_heartbeat = coordinator._send_heartbeat_request

    async def join_and_sync_and_tell() -> bytes:
        assignment: bytes = await join_and_sync()
        due()
        return assignment

    async def on_join_complete_and_tell(*args: Any) -> None:
        await on_join_complete(*args)
        joined()

    def reset_generation_and_tell(*args: Any, **kwargs: Any) -> None:
        was_member = coordinator._generation.generation_id != Generation.NO_GENERATION.generation_id
        reset_generation(*args, **kwargs)
        if not was_member:
            return
        lost(coordinator.heartbeat.poll_timeout_expired())
        if coordinator._subscription.partitions_auto_assigned():
            coordinator._subscription.assign_from_subscribed([])  # do not claim what others may own
        due()

    def request_rejoin_and_tell() -> None:
        request_rejoin()
        due()

    async def send_heartbeat_and_tell() -> Any:
        try:
            return await send_heartbeat()
        except FencedInstanceIdError:
            due()
            raise

    coordinator._do_join_and_sync_async = join_and_sync_and_tell
    coordinator._on_join_complete_async = on_join_complete_and_tell
    coordinator.reset_generation = reset_generation_and_tell
    coordinator.request_rejoin = request_rejoin_and_tell
    coordinator._send_heartbeat_request = send_heartbeat_and_tell


def _keep_the_poll_deadline(heartbeat: Any) -> None:
    """Let only ``heartbeat.poll`` reset the deadline of ``max_poll_interval_ms``; the end of a join did, too."""
    reset_timeouts = heartbeat.reset_timeouts

    def reset_all_but_the_poll() -> None:
        polled = heartbeat.last_poll
        reset_timeouts()
        heartbeat.last_poll = polled

    heartbeat.reset_timeouts = reset_all_but_the_poll
