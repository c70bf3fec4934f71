"""aiokafka: a leader that reads offsets before it assigns, and requests a rebalance if one pays.

aiokafka has no public call for either. `request_rejoin` is what the coordinator itself calls when a heartbeat reports a
rebalance; tests fail if it changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any
from weakref import ref

from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag
from loadwise.assignor.leader import Leader

FIRST_READING_S = 2.0
"""How long a leader without a fresh reading waits for one before it assigns..."""
_OF_SESSION = 1 / 3
"""... but at most this part of the session timeout, because the group waits for it."""


class AiokafkaWatch:
    """Connects a ``GroupCoordinator`` and a `Leader`."""

    def __init__(self, coordinator: Any, leader: Leader, lag: AiokafkaLag) -> None:
        self._leader, self._lag = leader, lag
        self._coordinator = coordinator
        self._session_s = coordinator._session_timeout_ms / 1000
        known = ref(coordinator)

        def ask() -> bool:
            coordinator = known()
            if coordinator is None or coordinator._rejoin_needed_fut.done() or coordinator.generation < 0:
                return False
            coordinator.request_rejoin()
            return True

        leader.ask = ask
        leader.name = coordinator._group_instance_id or ""

    def note(self) -> str:
        """Return the metadata that this member writes with a commit."""
        name = self._coordinator._group_instance_id or self._coordinator.member_id
        return self._leader.note(name) if name else ""

    async def elected(self, topics: Collection[str]) -> None:
        """Read the offsets of these topics before the member leads, unless there is a fresh reading."""
        self._leader.name = self._coordinator._group_instance_id or self._coordinator.member_id
        if not (self._leader.has_fresh_reading and self._lag.topics.issuperset(topics)):
            self._lag.include(topics)
            self._lag.refresh()
            await self._lag.wait(min(FIRST_READING_S, self._session_s * _OF_SESSION))


def timed(
    leader: Leader | None, get: Callable[..., Any], count: Callable[[Any], Mapping[str, int]]
) -> Callable[..., Any]:
    """Wrap ``getone`` or ``getmany`` to measure how long the application works on the records."""
    if leader is None:
        return get
    busy = leader.busy

    async def get_and_tell(*args: Any, **kwargs: Any) -> Any:
        busy.polls(time.monotonic_ns())
        records = await get(*args, **kwargs)
        busy.given(count(records), time.monotonic_ns())
        return records

    return get_and_tell
