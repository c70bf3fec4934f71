"""Whatever moves a group, what the group wants done is done: replaying the journal gives the live groups."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from classic_events import join_event
from consumer_groups import FakeTopics

from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.events import ConsumerHeartbeat, Join, Protocol
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.consumer import Subscription


@dataclass
class FakeLog:
    start_offset: int = 0
    end_offset: int = 10

    def end_before(self, _timestamp_ms: int, /) -> int | None:
        return None


class FakeLogs:
    def log(self, _name: str, _partition: int, /) -> FakeLog | None:
        return FakeLog()


def heartbeat(member_id: str) -> ConsumerHeartbeat:
    return ConsumerHeartbeat(
        token=1,
        member_id=member_id,
        epoch=0,
        topics=["t"],
        rebalance_timeout_ms=5000,
        owned={},
        assignor="weighted",
    )


def classic_join() -> Join:
    protocols = [Protocol("range", Subscription(topics=["t"]).encode())]
    timeouts = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 5000}
    return join_event(2, fresh_member_id="old", protocols=protocols, **timeouts)


@pytest.mark.parametrize(("second", "left"), [(heartbeat("b"), {"b", "c"}), (classic_join(), {"old", "c"})])
def test_a_member_that_ends_in_a_newcomers_heartbeat_does_not_come_back_on_replay(
    second: ConsumerHeartbeat | Join, left: set[str]
) -> None:
    """Beside a classic member, no consumer is left at that moment: the group stays one group, and goes on."""
    topics = FakeTopics(t=4)
    groups = Groups(consumer_limits=ConsumerGroupLimits(session_timeout_ms=1000), topics=topics, logs=FakeLogs())
    groups.handle("g", heartbeat("a"), 0)
    groups.handle("g", second, 500)
    groups.handle("g", heartbeat("c"), 1000)
    live = groups.get("g")
    assert live is not None
    assert set(live.members) == left
    replayed = Groups(topics=topics, records=groups.journal, now_ms=1000).get("g")
    assert replayed is not None
    assert (replayed.type, set(replayed.members)) == (live.type, left)
