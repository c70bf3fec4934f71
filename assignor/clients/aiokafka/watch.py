"""aiokafka: a leader that reads offsets before it assigns, and requests a rebalance if one pays.

aiokafka has no public call for either. `request_rejoin` is what the coordinator itself calls when a heartbeat reports a
rebalance; tests fail if it changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec, TypeVar
from weakref import ref

from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag
from loadwise.assignor.clients.watch import LeaderWatch
from loadwise.assignor.leader import Leader

_P = ParamSpec("_P")
_R = TypeVar("_R")


class AiokafkaWatch(LeaderWatch[AiokafkaLag]):
    """Connects a ``GroupCoordinator`` and a `Leader`."""

    def __init__(self, coordinator: Any, leader: Leader, lag: AiokafkaLag) -> None:
        known = ref(coordinator)

        def ask() -> bool:
            coordinator = known()
            if coordinator is None or coordinator._rejoin_needed_fut.done() or coordinator.generation < 0:
                return False
            coordinator.request_rejoin()
            return True

        session_s = coordinator._session_timeout_ms / 1000
        super().__init__(leader, lag, ask, instance_id=coordinator._group_instance_id, session_s=session_s)

    async def read(self, topics: set[str], member_id: str) -> None:
        """Read the offsets of these topics before the member leads, unless there is a fresh reading."""
        if self.elected(topics, member_id):
            await self.lag.wait(self.wait_s)


def timed(
    leader: Leader | None, get: Callable[_P, Coroutine[Any, Any, _R]], count: Callable[[_R], Mapping[str, int]]
) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """Wrap ``getone`` or ``getmany`` to measure how long the application works on the records."""
    if leader is None:
        return get
    busy = leader.busy

    async def get_and_tell(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        busy.polls(time.monotonic_ns())
        records = await get(*args, **kwargs)
        busy.given(count(records), time.monotonic_ns())
        return records

    return get_and_tell
