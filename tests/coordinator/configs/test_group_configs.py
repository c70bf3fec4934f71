"""Configs of groups: each that a group can have takes effect, in groups of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from client_messages import client_request
from streams_exchanges import streams_heartbeat
from wires import Wire, only

from loadwise.coordinator.features import features
from loadwise.coordinator.groups.consumer import limits
from loadwise.protocol.error_codes import ErrorCode

GROUP = 32


def consumer_heartbeat(epoch: int, member: str = "m") -> Any:
    first = epoch == 0
    return client_request(
        "ConsumerGroupHeartbeat", 1, group_id="app", member_id=member, member_epoch=epoch,
        rebalance_timeout_ms=60_000 if first else -1, subscribed_topic_names=["t"] if first else None,
        topic_partitions=[] if first else None,
    )  # fmt: skip


def share_heartbeat(epoch: int) -> Any:
    return client_request(
        "ShareGroupHeartbeat", 1, group_id="app", member_id="m", member_epoch=epoch, rack_id=None,
        subscribed_topic_names=["t"],
    )  # fmt: skip


HEARTBEATS: Mapping[str, Callable[[int], Any]] = {
    "consumer": consumer_heartbeat,
    "share": share_heartbeat,
    "streams": lambda epoch: streams_heartbeat(member_epoch=epoch, **({} if epoch == 0 else {"topology": None})),
}
NUMBERS = [*limits.NUMBERS, *(each for feature in features() for each in feature.group_numbers)]


def alter(wire: Wire, **configs: str | None) -> int:
    rows = [
        {"name": name.replace("_", "."), "value": value, "config_operation": 0 if value is not None else 1}
        for name, value in configs.items()
    ]
    resource = {"resource_type": GROUP, "resource_name": "app", "configs": rows}
    answer = wire.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    return int(only(answer.responses).error_code)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_each_number_reaches_the_limits_of_its_group(number: Any, is_new: bool) -> None:
    """Of a group that is there as of one that is made later; without the config, the broker's number holds again."""
    wire, heartbeat = Wire(), HEARTBEATS[number.name.partition(".")[0]]
    epoch = 0
    if not is_new:
        epoch = wire.exchange(heartbeat(0)).member_epoch
    value = min(number.most, number.bound or 77) - 1
    assert alter(wire, **{number.name.replace(".", "_"): str(value)}) == ErrorCode.NONE
    answer = wire.exchange(heartbeat(epoch))
    group = wire.cluster.groups.get("app")
    assert getattr(group.limits, number.field) == value
    of_brokers = getattr(type(group.limits)(), number.field)
    assert alter(wire, **{number.name.replace(".", "_"): None}) == ErrorCode.NONE
    wire.exchange(heartbeat(answer.member_epoch))
    assert getattr(group.limits, number.field) == of_brokers != value


@pytest.mark.parametrize("kind", HEARTBEATS)
def test_members_are_told_the_interval_of_their_group(kind: str) -> None:
    wire = Wire()
    epoch = wire.exchange(HEARTBEATS[kind](0)).member_epoch
    assert alter(wire, **{f"{kind}_heartbeat_interval_ms": "6500"}) == ErrorCode.NONE
    assert wire.exchange(HEARTBEATS[kind](epoch)).heartbeat_interval_ms == 6500


@pytest.mark.parametrize("kind", HEARTBEATS)
def test_a_session_lasts_as_long_as_the_config_of_its_group(kind: str) -> None:
    wire = Wire()
    assert alter(wire, **{f"{kind}_session_timeout_ms": "7000"}) == ErrorCode.NONE
    wire.exchange(HEARTBEATS[kind](0))
    groups = wire.cluster.groups
    groups.expire(7999)  # it sent its heartbeat at 1000
    assert list(groups.get("app").members) == ["m"]
    groups.expire(8000)
    assert not groups.get("app").members


def test_targets_of_a_consumer_group_are_as_far_apart_as_its_config_says() -> None:
    wire = Wire()
    assert alter(wire, consumer_assignment_interval_ms="5000") == ErrorCode.NONE
    alone = wire.exchange(consumer_heartbeat(0))
    joined = wire.exchange(consumer_heartbeat(0, "second"))
    assert (alone.member_epoch, joined.member_epoch) == (2, 2), "the second waits for a target"
    assert wire.exchange(consumer_heartbeat(2, "second")).assignment is None
    state = wire.cluster.groups.get("app").hard_state
    assert (state.epoch, state.target_epoch) == (3, 2)


@pytest.mark.parametrize("kind", HEARTBEATS)
def test_a_session_is_longer_than_the_interval_of_its_heartbeats(kind: str) -> None:
    """Also than that of the brokers, as Kafka's ``GroupConfig`` checks."""
    wire = Wire()
    session, heartbeat = f"{kind}_session_timeout_ms", f"{kind}_heartbeat_interval_ms"
    assert alter(wire, **{session: "500"}) == ErrorCode.INVALID_CONFIG
    assert alter(wire, **{session: "8000", heartbeat: "8000"}) == ErrorCode.INVALID_CONFIG
    assert alter(wire, **{session: "8001", heartbeat: "8000"}) == ErrorCode.NONE
    assert alter(wire, **{session: "8000"}) == ErrorCode.INVALID_CONFIG
