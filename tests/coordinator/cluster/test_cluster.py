"""Several brokers: how partitions and groups are spread, who refuses what, and what moving a leader changes."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest
from client_messages import client_message, client_request, request_bytes
from commits import commit
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol import metadata
from record_batches import batch
from wires import only

from loadwise.coordinator import BadClusterError
from loadwise.coordinator.calls.call import Answer, Call, HangUp
from loadwise.coordinator.cluster.brokers import Brokers, coordinator_partition
from loadwise.coordinator.cluster.leader_epochs import LeaderEpochs
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, encode_response, served

APIS = served(service.api for service in services().values())
TOKENS = count(1)

# ---- spreading ----


@given(
    brokers=st.integers(1, 9),
    racks=st.lists(st.sampled_from("abcd"), max_size=9),
    partitions=st.integers(0, 40),
    start=st.integers(0, 50),
    data=st.data(),
)
def test_leaders_and_replicas_are_spread_over_brokers_and_racks(
    brokers: int, racks: list[str], partitions: int, start: int, data: st.DataObject
) -> None:
    cluster = Brokers(brokers, racks[:brokers])
    factor = data.draw(st.integers(1, brokers))
    spread = cluster.spread(partitions, factor, start=start)
    assert all(len(set(replicas)) == len(replicas) == factor for replicas in spread)
    rack = {node.id: node.rack for node in cluster.nodes}
    for replicas in spread:
        assert len({rack[each] for each in replicas}) == min(factor, len(set(rack.values())))
    leaders = Counter(replicas[0] for replicas in spread)
    assert max((leaders[node.id] for node in cluster.nodes), default=0) <= -(-partitions // brokers)
    assert cluster.misplaced(spread) is None


def test_leaders_go_round_the_racks() -> None:
    cluster = Brokers(4, ["a", "a", "b", "b"])
    rack = {node.id: node.rack for node in cluster.nodes}
    leaders = [rack[replicas[0]] for replicas in cluster.spread(4, 1)]
    assert leaders in (["a", "b", "a", "b"], ["b", "a", "b", "a"])


@pytest.mark.parametrize(("brokers", "racks"), [(0, []), (-1, []), (2, ["a", "b", "c"])])
def test_a_cluster_that_cannot_be_is_refused(brokers: int, racks: list[str]) -> None:
    with pytest.raises(BadClusterError):
        Brokers(brokers, racks)


@pytest.mark.parametrize(
    ("group_id", "java_hash"),
    [
        ("", 0),
        ("hello", 99162322),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", -(2**31)),  # the famous one whose absolute value is no int
        ("\N{GRINNING FACE}", 1772899),
    ],
)
def test_a_group_is_in_the_partition_that_javas_hash_says(group_id: str, java_hash: int) -> None:
    assert coordinator_partition(group_id) == (0 if java_hash == -(2**31) else abs(java_hash) % 50)


def test_groups_are_spread_over_the_brokers_and_move_with_their_partition() -> None:
    cluster = Brokers(3)
    groups = [f"group-{number}" for number in range(300)]
    assert len({cluster.coordinator_of(group).id for group in groups}) == 3
    assert cluster.coordinator_of("Aa") is cluster.coordinator_of("BB")
    before = {group: cluster.coordinator_of(group).id for group in groups}
    cluster.move_coordinator("Aa")
    assert cluster.coordinator_of("Aa") is cluster.coordinator_of("BB")
    changed = {group for group in groups if cluster.coordinator_of(group).id != before[group]}
    assert changed == {group for group in groups if coordinator_partition(group) == coordinator_partition("Aa")}
    cluster.move_coordinator("Aa", 2)
    assert cluster.coordinator_of("Aa").id == 2
    with pytest.raises(BadClusterError, match="no running broker 9"):
        cluster.move_coordinator("Aa", 9)


def test_leader_epochs_end_where_the_next_one_begins() -> None:
    epochs = LeaderEpochs()
    epochs.start(1, 0)  # epoch 0 wrote nothing
    epochs.start(2, 10)
    epochs.start(3, 10)  # nor did 2
    epochs.start(5, 20)
    assert [epochs.of(offset) for offset in (0, 9, 10, 19, 20, 99)] == [1, 1, 3, 3, 5, 5]
    assert epochs.latest == 5
    # As LeaderEpochFileCache.endOffsetFor: too old, the end of the largest epoch up to it, the latest, unknown.
    assert [tuple(epochs.end_of(epoch, 30)) for epoch in (0, 1, 2, 3, 4, 5, 6, -1)] == [
        (0, 0), (1, 10), (1, 10), (3, 20), (3, 20), (5, 30), (-1, -1), (-1, -1)
    ]  # fmt: skip


# ---- who answers ----


class Wire:
    """Three brokers, topic ``t`` with three partitions on all of them, group ``g`` with an offset; asked by bytes."""

    def __init__(self) -> None:
        self.router = Router(brokers=Brokers(3, ["a", "b", "c"]))
        self.cluster = self.router.cluster
        for node in self.cluster.brokers.nodes:
            node.host, node.port = "127.0.0.1", 9000 + node.id
        self.topic_id = self.cluster.topics.create("t", 3).id
        commit(self.cluster.groups, "g", Committer(), {Partition("t", 0): CommittedOffset(2, 0, "")})
        self.coordinator = self.cluster.brokers.coordinator_of("g").id

    def leader(self, partition: int) -> int:
        found = self.cluster.topics.partition("t", partition)
        assert found is not None
        return found.leader

    def send(self, request: Any, node_id: int) -> list[Answer]:
        call = Call(next(TOKENS), decode_request(request_bytes(request), APIS), "/127.0.0.1", node_id)
        return self.router.receive(call, 1000)

    def ask(self, request: Any, node_id: int) -> Any:
        version = request.API_VERSION
        (answer,) = self.send(request, node_id)
        assert not hasattr(answer.response, "pieces"), "Metadata is asked with `metadata`"
        frame = bytes(encode_response(answer.response, answer.call.version, 7))
        return client_message(answer.call.request.api.response.__name__).decode(frame[4:], version=version, header=True)

    def metadata(self) -> Any:
        (answer,) = self.send(client_request("Metadata", 12, topics=None), 1)
        return metadata.MetadataResponse.decode(b"".join(answer.response.pieces), version=12)

    def produce(self, node_id: int, partition: int = 0, acks: int = -1) -> Any:
        data = {"index": partition, "records": batch([b"x"])}
        topics = [{"name": "t", "topic_id": self.topic_id, "partition_data": [data]}]
        request = client_request("Produce", 12, acks=acks, timeout_ms=1, topic_data=topics)
        return request if acks == 0 else self.ask(request, node_id)

    def fetch(self, *, rack: str = "", epoch: int = -1, offset: int = 0, version: int = 16) -> Any:
        partition = {
            "partition": 0, "current_leader_epoch": epoch, "fetch_offset": offset, "partition_max_bytes": 1000,
        }  # fmt: skip
        return client_request(
            "Fetch", version, cluster_id=None, max_wait_ms=0 if offset == 0 else 10_000, min_bytes=1, rack_id=rack,
            topics=[{"topic": "t", "topic_id": self.topic_id, "partitions": [partition]}],
        )  # fmt: skip


def others(node_id: int) -> list[int]:
    return [each for each in (1, 2, 3) if each != node_id]


def test_metadata_and_describe_cluster_tell_brokers_racks_leaders_and_replicas() -> None:
    wire = Wire()
    told = wire.metadata()
    brokers = [(1, 9001, "a"), (2, 9002, "b"), (3, 9003, "c")]
    assert [(each.node_id, each.port, each.rack) for each in told.brokers] == brokers
    partitions = only(told.topics).partitions
    assert sorted(each.leader_id for each in partitions) == [1, 2, 3]
    assert all(sorted(each.replica_nodes) == sorted(each.isr_nodes) == [1, 2, 3] for each in partitions)
    described = wire.ask(client_request("DescribeCluster", 2), 3)
    assert [(each.broker_id, each.port, each.rack) for each in described.brokers] == brokers
    leadership.move_leader(wire.cluster, "t", 0)
    moved = only(wire.metadata().topics).partitions[0]
    assert (moved.leader_id, moved.leader_epoch) == (wire.leader(0), 1)
    assert moved.leader_id != partitions[0].leader_id


def test_a_broker_that_does_not_lead_a_partition_says_so_and_who_does() -> None:
    wire = Wire()
    leader = wire.leader(0)
    for node_id in others(leader):
        answer = wire.produce(node_id)
        found = only(only(answer.responses).partition_responses)
        assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == (leader, 0)
        assert [(each.node_id, each.port) for each in answer.node_endpoints] == [(leader, 9000 + leader)]
        (silent,) = wire.send(wire.produce(node_id, acks=0), node_id)
        assert isinstance(silent.response, HangUp), "there is no other way to tell a producer with acks=0"
        # Before v11 a consumer has no rack, and reads from leaders only.
        old = only(only(wire.ask(wire.fetch(version=10), node_id).responses).partitions)
        assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        topics = [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        request = client_request("ListOffsets", 7, isolation_level=0, topics=topics)
        listed = only(only(wire.ask(request, node_id).topics).partitions)
        assert listed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(only(wire.produce(leader).responses).partition_responses).error_code == 0


def test_a_broker_that_does_not_hold_a_partition_lets_nobody_read_it() -> None:
    wire = Wire()
    wire.cluster.topics.delete(next(iter(wire.cluster.topics)))
    wire.topic_id = wire.cluster.topics.create("t", 1, replicas=[(2, 3)]).id
    answer = wire.ask(wire.fetch(), 1)
    found = only(only(answer.responses).partitions)
    assert found.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert found.current_leader.leader_id == 2
    assert only(answer.node_endpoints).node_id == 2
    assert only(only(wire.ask(wire.fetch(), 3).responses).partitions).error_code == 0


def test_a_consumer_is_sent_to_the_replica_in_its_rack() -> None:
    wire = Wire()
    leader = wire.leader(0)
    wire.produce(leader)
    racks = {node.id: node.rack or "" for node in wire.cluster.brokers.nodes}
    for node_id in others(leader):
        sent = only(only(wire.ask(wire.fetch(rack=racks[node_id]), leader).responses).partitions)
        assert (sent.error_code, sent.preferred_read_replica, bytes(sent.records or b"")) == (0, node_id, b"")
        assert sent.high_watermark == 1
        read = only(only(wire.ask(wire.fetch(rack=racks[node_id]), node_id).responses).partitions)
        assert (read.error_code, read.preferred_read_replica, bool(read.records)) == (0, -1, True)
    for rack in (racks[leader], "", "elsewhere"):
        read = only(only(wire.ask(wire.fetch(rack=rack), leader).responses).partitions)
        assert (read.error_code, read.preferred_read_replica, bool(read.records)) == (0, -1, True)


def test_an_old_leader_epoch_is_fenced_and_a_future_one_unknown() -> None:
    wire = Wire()
    wire.produce(wire.leader(0))
    leadership.move_leader(wire.cluster, "t", 0)
    leader = wire.leader(0)
    wire.produce(leader)
    errors = {}
    for epoch in (-1, 0, 1, 2):
        answer = wire.ask(wire.fetch(epoch=epoch), leader)
        errors[epoch] = only(only(answer.responses).partitions).error_code
    assert errors == {-1: 0, 0: ErrorCode.FENCED_LEADER_EPOCH, 1: 0, 2: ErrorCode.UNKNOWN_LEADER_EPOCH}
    ends = {}
    for epoch in (0, 1, 2):
        partition = {"partition": 0, "current_leader_epoch": 1, "leader_epoch": epoch}
        request = client_request(
            "OffsetForLeaderEpoch", 4, replica_id=-1, topics=[{"topic": "t", "partitions": [partition]}]
        )
        end = only(only(wire.ask(request, leader).topics).partitions)
        ends[epoch] = (end.error_code, end.leader_epoch, end.end_offset)
    assert ends == {0: (0, 0, 1), 1: (0, 1, 2), 2: (0, -1, -1)}


def test_a_fetch_that_waits_hears_that_the_leader_moved() -> None:
    wire = Wire()
    leader = wire.leader(0)
    wire.produce(leader)
    assert wire.send(wire.fetch(offset=1, version=10), leader) == []
    leadership.move_leader(wire.cluster, "t", 0)
    (answer,) = wire.router.expire(1001)
    assert only(only(answer.response.responses).partitions).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("partition", "to"), [(7, None), (0, 9)])
def test_a_leader_cannot_move_to_where_no_replica_is(partition: int, to: int | None) -> None:
    with pytest.raises(BadClusterError, match=str(partition)):
        leadership.move_leader(Wire().cluster, "t", partition, to)


def group_requests() -> dict[str, Any]:
    """A request about group ``g`` of every API that only its coordinator answers."""
    protocol = {"name": "range", "metadata": b""}
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": None}
    wanted = {"group_id": "g", "topics": None}
    identity = {"member_id": "m"}
    who = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    return {
        "join": client_request(
            "JoinGroup",
            9,
            group_id="g",
            session_timeout_ms=1000,
            rebalance_timeout_ms=1000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        ),
        "sync": client_request("SyncGroup", 5, protocol_type="consumer", protocol_name="range", assignments=[], **who),
        "heartbeat": client_request("Heartbeat", 4, **who),
        "leave": client_request("LeaveGroup", 5, group_id="g", members=[identity]),
        "leave before v3": client_request("LeaveGroup", 2, group_id="g", member_id="m"),
        "commit": client_request(
            "OffsetCommit", 9, group_id="g", member_id="", topics=[{"name": "t", "partitions": [partition]}]
        ),
        "offsets": client_request("OffsetFetch", 9, groups=[wanted]),
        "offsets before v8": client_request("OffsetFetch", 7, group_id="g", topics=None),
        "offsets in v1": client_request(
            "OffsetFetch", 1, group_id="g", topics=[{"name": "t", "partition_indexes": [0]}]
        ),
        "delete offsets": client_request(
            "OffsetDelete", 0, group_id="g", topics=[{"name": "t", "partitions": [{"partition_index": 0}]}]
        ),
        "describe": client_request("DescribeGroups", 5, groups=["g"]),
        "delete": client_request("DeleteGroups", 2, groups_names=["g"]),
    }


def error_of(name: str, answer: Any) -> int:
    match name:
        case "commit" | "offsets in v1":
            return int(only(only(answer.topics).partitions).error_code)
        case "offsets" | "describe":
            return int(only(answer.groups).error_code)
        case "delete":
            return int(only(answer.results).error_code)
        case _:
            return int(answer.error_code)


@pytest.mark.parametrize("name", group_requests())
def test_only_its_coordinator_answers_for_a_group(name: str) -> None:
    wire = Wire()
    for node_id in others(wire.coordinator):
        assert error_of(name, wire.ask(group_requests()[name], node_id)) == ErrorCode.NOT_COORDINATOR
    assert error_of(name, wire.ask(group_requests()[name], wire.coordinator)) != ErrorCode.NOT_COORDINATOR


def test_each_broker_lists_and_finds_its_own_groups() -> None:
    wire = Wire()
    request = client_request("ListGroups", 4)
    listed = {node_id: [each.group_id for each in wire.ask(request, node_id).groups] for node_id in (1, 2, 3)}
    assert listed == {node_id: ["g"] if node_id == wire.coordinator else [] for node_id in (1, 2, 3)}
    for node_id in (1, 2, 3):
        request = client_request("FindCoordinator", 4, key_type=0, coordinator_keys=["g", "hello"])
        found = wire.ask(request, node_id).coordinators
        assert [each.node_id for each in found] == [wire.coordinator, wire.cluster.brokers.coordinator_of("hello").id]
        request = client_request("ListGroups", 4)


def test_who_waits_in_a_group_hears_that_its_coordinator_moved_and_members_stay() -> None:
    wire = Wire()
    join = group_requests()["join"]
    first = wire.ask(join, wire.coordinator).member_id  # MEMBER_ID_REQUIRED
    join = group_requests()["join"]
    join.member_id = first
    joined = wire.ask(join, wire.coordinator)
    assert joined.error_code == 0
    who = {
        "group_id": "g", "generation_id": 1, "member_id": first, "protocol_type": "consumer", "protocol_name": "range",
    }  # fmt: skip
    assigned = [{"member_id": first, "assignment": b"all"}]
    assert wire.ask(client_request("SyncGroup", 5, **who, assignments=assigned), wire.coordinator).error_code == 0
    second = group_requests()["join"]
    second.member_id = wire.ask(group_requests()["join"], wire.coordinator).member_id
    assert wire.send(second, wire.coordinator) == [], "it waits for the first to come again"

    leadership.move_coordinator(wire.cluster, "g")
    (answer,) = wire.router.expire(1001)
    assert answer.response.error_code == ErrorCode.NOT_COORDINATOR
    now = wire.cluster.brokers.coordinator_of("g").id
    assert now != wire.coordinator
    beat = group_requests()["heartbeat"]
    beat.member_id = first
    assert wire.ask(beat, wire.coordinator).error_code == ErrorCode.NOT_COORDINATOR
    assert wire.ask(beat, now).error_code == 0, "the stable generation is in the records, the rebalance is not"
    assert wire.ask(client_request("SyncGroup", 5, **who), now).assignment == b"all"
    offsets = only(only(wire.ask(group_requests()["offsets"], now).groups).topics)
    assert only(offsets.partitions).committed_offset == 2


# ---- topics whose creator says where they are ----


def create(wire: Wire, *, partitions: int = -1, factor: int = -1, brokers: list[list[int]] | None = None) -> Any:
    assignments = [{"partition_index": number, "broker_ids": each} for number, each in enumerate(brokers or [])]
    topic = {"name": "new", "num_partitions": partitions, "replication_factor": factor, "assignments": assignments}
    return only(wire.ask(client_request("CreateTopics", 7, topics=[topic], timeout_ms=1), 2).topics)


@pytest.mark.parametrize("brokers", [[[]], [[1, 9]], [[2, 2]], [[1], [1, 2]]])
def test_replicas_that_cannot_be_are_refused(brokers: list[list[int]]) -> None:
    wire = Wire()
    assert create(wire, brokers=brokers).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assignments = [{"broker_ids": each} for each in brokers]
    topic = {"name": "t", "count": 3 + len(brokers), "assignments": assignments}
    request = client_request("CreatePartitions", 2, topics=[topic], timeout_ms=1, validate_only=False)
    assert only(wire.ask(request, 3).results).error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_topic_that_is_named_twice_does_not_grow() -> None:
    wire = Wire()
    row = {"name": "t", "count": 9}
    request = client_request("CreatePartitions", 2, topics=[row, row], timeout_ms=1, validate_only=False)
    assert only(wire.ask(request, 1).results).error_code == ErrorCode.INVALID_REQUEST
    topic = wire.cluster.topics.get("t")
    assert topic is not None
    assert len(topic.partitions) < 9


def test_topics_are_where_their_creator_says() -> None:
    wire = Wire()
    made = create(wire, brokers=[[3, 1], [2, 3]])
    assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 2, 2)
    topic = wire.cluster.topics.get("new")
    assert topic is not None
    assert [(each.leader, each.replicas) for each in topic.partitions] == [(3, (3, 1)), (2, (2, 3))]
    added = {"name": "new", "count": 3, "assignments": [{"broker_ids": [1, 2]}]}
    request = client_request("CreatePartitions", 2, topics=[added], timeout_ms=1, validate_only=False)
    assert only(wire.ask(request, 3).results).error_code == 0
    assert topic.partitions[2].replicas == (1, 2)


@pytest.mark.parametrize(("factor", "error"), [(3, 0), (4, 38), (0, 38), (-2, 38), (-1, 0)])
def test_there_are_no_more_replicas_than_brokers(factor: int, error: int) -> None:
    wire = Wire()
    assert create(wire, partitions=2, factor=factor).error_code == error
