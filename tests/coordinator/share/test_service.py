"""What brokers keep of share groups: their partitions, and the sessions of their members."""

from __future__ import annotations

from typing import Any

import pytest
from client_messages import client_request, request_bytes
from record_batches import batch
from wires import TOKENS, Wire

from loadwise.coordinator.calls.call import Answer, Call
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.coordinator.share import service, sessions
from loadwise.coordinator.share import share_fetch_78 as share_fetch_api
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, served

APIS = served(each.api for each in services().values())


def share_fetch(wire: Wire, group: str, epoch: int = 0, numbers: tuple[int, ...] = (0,), **values: Any) -> Any:
    """A ShareFetch of topic ``t``."""
    topic = {"topic_id": wire.topic_id, "partitions": [{"partition_index": each} for each in numbers]}
    asked = {
        "group_id": group, "member_id": "m", "share_session_epoch": epoch, "max_wait_ms": 0, "min_bytes": 1,
        "max_bytes": 1_000_000, "max_records": 500, "batch_size": 500, "topics": [topic],
    }  # fmt: skip
    return client_request("ShareFetch", 1, **asked | values)


def begin_at_the_start(wire: Wire, *groups: str) -> None:
    for each in groups:
        wire.cluster.resource_configs.put(ConfigResourceType.GROUP, each, {"share.auto.offset.reset": "earliest"})


def test_of_ids_without_a_group_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_MOST_UNKEPT", 2)
    wire = Wire()
    begin_at_the_start(wire, "a", "b", "c", "s")
    assert wire.exchange(heartbeat()).error_code == 0
    for group in ("s", "a", "b", "c"):
        (topic,) = wire.exchange(share_fetch(wire, group)).responses
        assert [len(each.acquired_records) for each in topic.partitions] == [1]

    def is_known(group: str) -> bool:
        return ShareGroups.of(wire.cluster).shares.known(service.ShareKey(group, wire.topic_id, 0)) is not None

    assert [is_known(each) for each in "sabc"] == [True, False, True, True], "a real group stays"


def test_sessions_have_room_for_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST_PARTITIONS", 3)
    wire = Wire()
    assert wire.exchange(share_fetch(wire, "a", numbers=(0, 1))).error_code == 0
    refused = wire.exchange(share_fetch(wire, "b", numbers=(0, 1)))
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert wire.exchange(share_fetch(wire, "b")).error_code == 0
    assert wire.exchange(share_fetch(wire, "a", 1, numbers=(0, 1))).error_code == 0, "these are there already"
    refused = wire.exchange(share_fetch(wire, "a", 2, numbers=(7,)))
    assert refused.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert wire.exchange(share_fetch(wire, "b", -1)).error_code == 0
    assert wire.exchange(share_fetch(wire, "a", 3, numbers=(7,))).error_code == 0, "a session that ends makes room"


# ---- several brokers ----


class Brokered(Wire):
    """Three brokers with topic ``t`` on each of them."""

    def __init__(self) -> None:
        self.router = Router(brokers=Brokers(3))
        self.cluster = self.router.cluster
        for node in self.cluster.brokers.nodes:
            node.host, node.port = "127.0.0.1", 9092 + node.id
        self.topic_id = self.cluster.topics.create("t", 1, replication_factor=3).id

    @property
    def leader(self) -> int:
        partition = self.cluster.topics.partition("t", 0)
        assert partition is not None
        return partition.leader

    def ask_node(self, node_id: int, request: Any) -> list[Answer]:
        frame = request_bytes(request)
        call = Call(next(TOKENS), decode_request(frame, APIS), "/127.0.0.1", node_id)
        return self.router.receive(call, 1000)


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
            leadership.stop_broker(wire.cluster, wire.leader)
        case _:
            getattr(leadership, how)(wire.cluster, "t", 0)
    row = row_of(wire.router.expire(1000))
    assert (row.error_code, row.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, wire.leader)


def acquired(row: Any) -> list[tuple[int, int, int]]:
    return [(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records]


def heartbeat(member: str = "m", epoch: int = 0) -> Any:
    who = {"group_id": "s", "member_id": member, "member_epoch": epoch}
    return client_request("ShareGroupHeartbeat", 1, **who, subscribed_topic_names=["t"])


def telling(wire: Wire, first: int, last: int, kind: int = 1) -> list[dict[str, Any]]:
    batches = [{"first_offset": first, "last_offset": last, "acknowledge_types": [kind]}]
    return [{"topic_id": wire.topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": batches}]}]


def test_another_leader_goes_on_with_what_was_acknowledged() -> None:
    wire = Brokered()
    begin_at_the_start(wire, "s")
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    log.append(batch([b"x"] * 6))
    assert wire.ask_node(wire.cluster.brokers.coordinator_of("s").id, heartbeat())[0].response.error_code == 0
    first = wire.leader
    assert acquired(row_of(wire.ask_node(first, share_fetch(wire, "s")))) == [(0, 5, 1)]
    row = row_of(wire.ask_node(first, share_fetch(wire, "s", 1, topics=telling(wire, 0, 1))))
    assert row.acknowledge_error_code == 0
    row = row_of(wire.ask_node(first, share_fetch(wire, "s", 2, topics=telling(wire, 2, 2, kind=2))))
    assert (row.acknowledge_error_code, acquired(row)) == (0, [(2, 2, 2)]), "it was released, and came back"
    leadership.move_leader(wire.cluster, "t", 0)
    assert wire.leader != first
    row = row_of(wire.ask_node(first, share_fetch(wire, "s", 3, topics=telling(wire, 2, 5))))
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (row.error_code, row.acknowledge_error_code) == (moved, moved)
    row = row_of(wire.ask_node(wire.leader, share_fetch(wire, "s", member_id="other")))
    assert acquired(row) == [(2, 2, 2), (3, 5, 1)], "a lock does not outlive its leader, and the count does"


def test_records_that_are_deleted_are_passed_over_while_members_have_some() -> None:
    wire = Wire()
    begin_at_the_start(wire, "s")
    assert wire.exchange(heartbeat()).error_code == 0
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    for _ in range(2):
        log.append(batch([b"x"] * 3))
    (topic,) = wire.exchange(share_fetch(wire, "s", max_records=6)).responses
    assert acquired(topic.partitions[0]) == [(0, 5, 1)]
    wire.cluster.delete_records(log, 7)
    (topic,) = wire.exchange(share_fetch(wire, "s", 1, topics=telling(wire, 0, 5))).responses
    assert topic.partitions[0].acknowledge_error_code == 0
    assert acquired(topic.partitions[0]) == [(7, 8, 1)]
    share = ShareGroups.of(wire.cluster).shares.known(service.ShareKey("s", wire.topic_id, 0))
    assert share is not None
    assert share.start_offset == 7


def test_deleted_records_make_room_for_a_fetch_that_waits() -> None:
    wire = Brokered()
    wire.cluster.resource_configs.put(
        ConfigResourceType.GROUP, "s", {"share.auto.offset.reset": "earliest", "share.partition.max.record.locks": "3"}
    )
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    for _ in range(2):
        log.append(batch([b"x"] * 3))
    assert acquired(row_of(wire.ask_node(wire.leader, share_fetch(wire, "s", max_records=3)))) == [(0, 2, 1)]
    other = share_fetch(wire, "s", member_id="other", max_wait_ms=2**31 - 1)
    assert wire.ask_node(wire.leader, other) == []
    wire.cluster.delete_records(log, 3)
    assert acquired(row_of(wire.router.expire(1000))) == [(3, 5, 1)]


def test_each_fetch_looks_at_the_next_partitions_of_a_large_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many partitions a session has, one request keeps others waiting for a few of them."""
    monkeypatch.setattr(share_fetch_api, "_AT_ONCE", 2)
    wire = Wire()
    begin_at_the_start(wire, "s")
    wire.topic_id = wire.cluster.topics.create("wide", 5).id
    for number in range(5):
        log = wire.cluster.topics.log("wide", number)
        assert log is not None
        log.append(batch([b"x"]))
    asked = [share_fetch(wire, "s", 0, tuple(range(5))), *(share_fetch(wire, "s", each, ()) for each in (1, 2, 3))]
    found = [
        [row.partition_index for topic in wire.exchange(each).responses for row in topic.partitions if acquired(row)]
        for each in asked
    ]
    assert found == [[0, 1], [2, 3], [4], []]  # the last ones look at 4, 0 and 1, 2


def test_a_fetch_of_a_part_of_a_session_waits_a_part_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_fetch_api, "_AT_ONCE", 1)
    wire = Wire()
    wire.topic_id = wire.cluster.topics.create("wide", 5).id
    request = share_fetch(wire, "s", 0, tuple(range(5)), max_wait_ms=500)
    assert wire.send(request_bytes(request, 1, "client")) == []
    assert ShareGroups.of(wire.cluster).fetches.next_deadline_ms == wire.cluster.now_ms + 100


def test_a_topic_that_is_made_again_is_another_one() -> None:
    wire = Wire()
    begin_at_the_start(wire, "s")
    assert wire.exchange(heartbeat()).error_code == 0
    wire.exchange(share_fetch(wire, "s"))
    old = wire.topic_id
    wire.ask("DeleteTopics", 3, topic_names=["t"], timeout_ms=1000)
    assert ShareGroups.of(wire.cluster).shares.state("s", old, 0) is None
    (topic,) = wire.exchange(share_fetch(wire, "s", 1, topics=telling(wire, 0, 2))).responses
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert [(each.error_code, each.acknowledge_error_code) for each in topic.partitions] == [(unknown, unknown)]
    new = wire.cluster.topics.create("t", 1).id
    answer = wire.exchange(heartbeat(epoch=3))
    assert [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions] == [(new, [0])]
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    log.append(batch([b"x"]))
    wire.topic_id = new
    forgotten = [{"topic_id": old, "partitions": [0]}]
    (topic,) = wire.exchange(share_fetch(wire, "s", 2, forgotten_topics_data=forgotten)).responses
    assert (topic.topic_id, acquired(topic.partitions[0])) == (new, [(0, 0, 1)])


@pytest.mark.parametrize("start", [-(2**63), -2, 2**63 - 1])
def test_offsets_that_cannot_be_are_described_and_passed_over(start: int) -> None:
    wire = Wire()
    topics = [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": start}]}]
    altered = wire.ask("AlterShareGroupOffsets", 0, group_id="s", topics=topics)
    assert altered.responses[0].partitions[0].error_code == 0
    described = wire.ask("DescribeShareGroupOffsets", 1, groups=[{"group_id": "s", "topics": None}])
    ((row,),) = [topic.partitions for group in described.groups for topic in group.topics]
    assert (row.start_offset, row.lag) == (start, min(max(3 - start, 0), 2**63 - 1))
    (topic,) = wire.exchange(share_fetch(wire, "s")).responses
    assert acquired(topic.partitions[0]) == ([(0, 2, 1)] if start < 0 else [])
