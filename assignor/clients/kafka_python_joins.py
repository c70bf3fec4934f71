"""kafka-python: joins that are finished, however short ``poll(timeout_ms=…)`` is.

A join goes on in the background when ``poll`` gives up on it. kafka-python 3.0 loses such a join in two ways:

- Where nothing but a changed subscription or new metadata asked for it, ``need_rejoin`` is False once it has begun, so
  no later ``poll`` takes its result. Heartbeats stay off, the broker evicts the member, and the member goes on with the
  assignment that it had. At the start of a group that is none at all, since the first one is made before there is
  metadata. (Java's ``AbstractCoordinator.rejoinNeededOrPending`` asks for the pending join too.)
- Where it has ended before the next ``poll`` looks, that begins another one, and the whole group joins again; with
  short timeouts and slow processing, for ever.
"""

from __future__ import annotations

from typing import Any


def finish_joins(coordinator: Any) -> None:
    """Make a kafka-python ``ConsumerCoordinator`` take the result of every join that it has begun."""
    need_rejoin = coordinator.need_rejoin
    join_and_sync = coordinator._do_join_and_sync_async
    on_join_complete = coordinator._on_join_complete_async
    untaken: tuple[Any, frozenset[str], bytes] | None = None

    def need_rejoin_or_pending() -> bool:
        pending = coordinator.rejoining and coordinator._subscription.partitions_auto_assigned()
        return bool(pending or need_rejoin())

    async def join_and_sync_once() -> bytes:
        nonlocal untaken
        topics = frozenset(coordinator._subscription.subscription)
        if untaken is not None and untaken[:2] == (coordinator._generation, topics):
            return untaken[2]
        assignment: bytes = await join_and_sync()
        untaken = (coordinator._generation, topics, assignment)
        return assignment

    async def on_join_complete_and_taken(*args: Any) -> None:
        nonlocal untaken
        untaken = None
        await on_join_complete(*args)

    coordinator.need_rejoin = need_rejoin_or_pending
    coordinator._do_join_and_sync_async = join_and_sync_once
    coordinator._on_join_complete_async = on_join_complete_and_taken
