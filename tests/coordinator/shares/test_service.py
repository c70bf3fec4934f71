"""What brokers keep of share groups: their partitions, and the sessions of their members."""

from __future__ import annotations

from typing import Any

import pytest
from access_requests import built
from wires import TOKENS, Wire

from loadwise.coordinator.apis import SERVICES
from loadwise.coordinator.calls import Answer, Call
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.configs.resources import ResourceType
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.shares import service, sessions
from loadwise.protocol import share_group
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, served

APIS = served(each.api for each in SERVICES.values())


def share_fetch(wire: Wire, group: str, epoch: int = 0, numbers: tuple[int, ...] = (0,), **values: Any) -> Any:
    """A ShareFetch of topic ``t``."""
    topic = {"topic_id": wire.topic_id, "partitions": [{"partition_index": each} for each in numbers]}
    asked = {
        "group_id": group, "member_id": "m", "share_session_epoch": epoch, "max_wait_ms": 0, "min_bytes": 1,
        "max_bytes": 1_000_000, "max_records": 500, "batch_size": 500, "topics": [topic],
    }  # fmt: skip
    return built(share_group.ShareFetchRequest, 1, asked | values)


def begin_at_the_start(wire: Wire, *groups: str) -> None:
    for each in groups:
        wire.cluster.resource_configs.put(ResourceType.GROUP, each, {"share.auto.offset.reset": "earliest"})


def test_of_ids_without_a_group_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_MOST_UNKEPT", 2)
    wire = Wire()
    begin_at_the_start(wire, "a", "b", "c", "s")
    heartbeat = {"group_id": "s", "member_id": "m", "member_epoch": 0, "subscribed_topic_names": ["t"]}
    assert wire.ask(built(share_group.ShareGroupHeartbeatRequest, 1, heartbeat), 1).error_code == 0
    for group in ("s", "a", "b", "c"):
        (topic,) = wire.ask(share_fetch(wire, group), 1).responses
        assert [len(each.acquired_records) for each in topic.partitions] == [1]

    def is_known(group: str) -> bool:
        return wire.cluster.shares.known(service.ShareKey(group, wire.topic_id, 0)) is not None

    assert [is_known(each) for each in "sabc"] == [True, False, True, True], "a real group stays"


def test_sessions_have_room_for_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST_PARTITIONS", 3)
    wire = Wire()
    assert wire.ask(share_fetch(wire, "a", numbers=(0, 1)), 1).error_code == 0
    refused = wire.ask(share_fetch(wire, "b", numbers=(0, 1)), 1)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert wire.ask(share_fetch(wire, "b"), 1).error_code == 0
    assert wire.ask(share_fetch(wire, "a", 1, numbers=(0, 1)), 1).error_code == 0, "these are there already"
    refused = wire.ask(share_fetch(wire, "a", 2, numbers=(7,)), 1)
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert wire.ask(share_fetch(wire, "b", -1), 1).error_code == 0
    assert wire.ask(share_fetch(wire, "a", 3, numbers=(7,)), 1).error_code == 0, "a session that ends makes room"


# ---- several brokers ----


class Brokered(Wire):
    """Three brokers with topic ``t`` on each of them."""

    def __init__(self) -> None:
        self.cluster = Cluster(SERVICES, brokers=Brokers(3))
        for node in self.cluster.brokers.nodes:
            node.host, node.port = "127.0.0.1", 9092 + node.id
        self.topic_id = self.cluster.topics.create("t", 1, replication_factor=3).id

    @property
    def leader(self) -> int:
        partition = self.cluster.topics.partition("t", 0)
        assert partition is not None
        return partition.leader

    def ask_node(self, node_id: int, request: Any) -> list[Answer]:
        request.with_header(7, "client")
        frame = bytes(request.encode(header=True))
        call = Call(next(TOKENS), decode_request(frame, APIS), "/127.0.0.1", node_id)
        return self.cluster.receive(call, 1000)


def row_of(answers: list[Answer]) -> Any:
    (answer,) = answers
    ((row,),) = [topic.partitions for topic in answer.response.responses]
    return row


def test_a_broker_that_does_not_lead_tells_who_does() -> None:
    wire = Brokered()
    other = next(node.id for node in wire.cluster.brokers.nodes if node.id != wire.leader)
    (answer,) = wire.ask_node(other, share_fetch(wire, "s"))
    row = row_of([answer])
    assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, wire.leader)
    assert [each.node_id for each in answer.response.node_endpoints] == [wire.leader]


@pytest.mark.parametrize("how", ["move_leader", "drop_leader", "stop_broker"])
def test_a_fetch_that_waits_is_told_when_its_partition_has_another_leader(how: str) -> None:
    wire = Brokered()
    assert wire.ask_node(wire.leader, share_fetch(wire, "s", max_wait_ms=2**31 - 1)) == []
    match how:
        case "stop_broker":
            wire.cluster.stop_broker(wire.leader)
        case _:
            getattr(wire.cluster, how)("t", 0)
    row = row_of(wire.cluster.expire(1000))
    assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, wire.leader)
