"""kafka-python: a leader that reads offsets before it assigns, and requests a rebalance if one pays.

The coordinator in `internals` calls `KafkaPythonWatch` between JoinGroup and SyncGroup.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any
from weakref import ref

from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.leader import Leader

FIRST_READING_S = 2.0
"""How long a leader without a fresh reading waits for one before it assigns..."""
_OF_SESSION = 1 / 3
"""... but at most this part of the session timeout, because the group waits and heartbeats are off."""
_LOOK_S = 0.01


class KafkaPythonWatch:
    """Connects a ``ConsumerCoordinator`` and a `Leader`."""

    def __init__(self, coordinator: Any, leader: Leader, lag: KafkaPythonLag) -> None:
        self._lag = lag
        self._leader = leader
        self._deadline = 0.0
        known = ref(coordinator)  # the background reader must not keep a dropped consumer alive

        def ask() -> bool:
            coordinator = known()
            if coordinator is None or not coordinator.stable() or coordinator.rejoining or coordinator.rejoin_needed:
                return False
            coordinator.request_rejoin()
            return True

        leader.ask = ask
        leader.name = coordinator.group_instance_id or ""

    def note(self, coordinator: Any) -> str:
        """Return the metadata that this member writes with a commit."""
        name = coordinator.group_instance_id or coordinator._generation.member_id
        return self._leader.note(name) if name else ""

    def elected(self, coordinator: Any, topics: Collection[str], member_id: str) -> None:
        """Start to read the offsets of these topics before the member leads, unless there is a fresh reading."""
        self._leader.name = coordinator.group_instance_id or member_id
        if not (self._leader.has_fresh_reading and self._lag.topics.issuperset(topics)):
            self._lag.include(topics)
            self._lag.refresh()
        self._deadline = time.monotonic() + min(
            FIRST_READING_S, coordinator.config["session_timeout_ms"] / 1000 * _OF_SESSION
        )

    async def read(self, sleep: Any) -> None:
        """Wait for that reading; ``sleep`` is the client's own, which lets other tasks run."""
        while self._lag.pending and time.monotonic() < self._deadline:
            await sleep(_LOOK_S)
