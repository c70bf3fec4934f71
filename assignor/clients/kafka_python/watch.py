"""kafka-python: a leader that reads offsets before it assigns, and requests a rebalance if one pays.

The coordinator in `internals` calls `KafkaPythonWatch` between JoinGroup and SyncGroup.
"""

from __future__ import annotations

import time
from typing import Any
from weakref import ref

from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag
from loadwise.assignor.clients.watch import LeaderWatch
from loadwise.assignor.leader import Leader

_LOOK_S = 0.01


class KafkaPythonWatch(LeaderWatch[KafkaPythonLag]):
    """Connects a ``ConsumerCoordinator`` and a `Leader`."""

    def __init__(self, coordinator: Any, leader: Leader, lag: KafkaPythonLag) -> None:
        known = ref(coordinator)  # the background reader must not keep a dropped consumer alive

        def ask() -> bool:
            coordinator = known()
            if coordinator is None or not coordinator.stable() or coordinator.rejoining or coordinator.rejoin_needed:
                return False
            coordinator.request_rejoin()
            return True

        session_s = coordinator.config["session_timeout_ms"] / 1000
        super().__init__(leader, lag, ask, instance_id=coordinator.group_instance_id, session_s=session_s)
        self._deadline = 0.0

    def start(self, topics: set[str], member_id: str) -> None:
        """Start to read the offsets of these topics before the member leads, unless there is a fresh reading."""
        self.elected(topics, member_id)
        self._deadline = time.monotonic() + self.wait_s

    async def read(self, sleep: Any) -> None:
        """Wait for that reading; ``sleep`` is the client's own, which lets other tasks run."""
        while self.lag.pending and time.monotonic() < self._deadline:
            await sleep(_LOOK_S)
