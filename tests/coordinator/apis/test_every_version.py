"""Every version of every API that is advertised: a request as a client writes it, an answer as a client reads it.

The broker is driven without a network, under a clock that stands still.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import admin_exchanges
import config_exchanges
import pytest
import security_exchanges
import share_exchanges
import streams_exchanges
import transaction_exchanges
from any_message import contents
from client_messages import client_message, client_request, request_bytes
from hypothesis import given
from hypothesis import strategies as st
from record_batches import batch
from seeds import examples
from wires import APIS, Wire, only

from loadwise.coordinator.calls.call import EncodedBody, HangUp, NoAnswer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.routing.services import services
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api, encode_response


def api_versions(wire: Wire, version: int) -> None:
    answer = wire.ask("ApiVersions", version, client_software_name="x", client_software_version="1.0")
    assert answer.error_code == 0
    assert {row.api_key for row in answer.api_keys} == set(services())


def metadata(wire: Wire, version: int) -> None:
    answer = wire.ask("Metadata", version, topics=[{"name": "t"}])
    found = only(answer.topics)
    assert (found.name, found.error_code, len(found.partitions)) == ("t", 0, 2)
    assert [(node.node_id, node.host, node.port) for node in answer.brokers] == [(1, "127.0.0.1", 9092)]
    assert only(wire.ask("Metadata", version, topics=None if version else []).topics).name == "t"
    if version >= 12:
        for name in (None, ""):  # the second is how Java writes it
            by_id = {"name": name, "topic_id": wire.topic_id}
            assert only(wire.ask("Metadata", version, topics=[by_id]).topics).name == "t"


def find_coordinator(wire: Wire, version: int) -> None:
    answer = wire.ask("FindCoordinator", version, key="g", key_type=0, coordinator_keys=["g"])
    found = answer if version < 4 else only(answer.coordinators)
    assert (found.error_code, found.node_id, found.port) == (0, 1, 9092)


def produce(wire: Wire, version: int) -> None:
    topics = [{"name": "t", "topic_id": wire.topic_id, "partition_data": [{"index": 1, "records": batch([b"x"])}]}]
    answer = wire.ask("Produce", version, acks=-1, timeout_ms=1, topic_data=topics)
    answer = only(only(answer.responses).partition_responses)
    assert (answer.index, answer.error_code, answer.base_offset) == (1, 0, 0)


def fetch(wire: Wire, version: int) -> None:
    partition = {
        "partition": 0, "fetch_offset": 1, "partition_max_bytes": 1000, "replica_directory_id": None,
        "high_watermark": 2**63 - 1,
    }  # fmt: skip
    answer = wire.ask(
        "Fetch",
        version,
        cluster_id=None,
        max_wait_ms=0,
        min_bytes=1,
        topics=[{"topic": "t", "topic_id": wire.topic_id, "partitions": [partition]}],
    )
    found = only(only(answer.responses).partitions)
    assert (answer.session_id, found.error_code, found.high_watermark) == (0, 0, 3)
    log = wire.cluster.topics.log("t", 0)
    assert log is not None
    assert found.records == log.read(0, 1000, at_least_one=True)


def list_offsets(wire: Wire, version: int) -> None:
    def offset(timestamp: int) -> int:
        each = {"partition_index": 0, "timestamp": timestamp}
        answer = wire.ask("ListOffsets", version, isolation_level=0, topics=[{"name": "t", "partitions": [each]}])
        found = only(only(answer.topics).partitions)
        assert found.error_code == 0
        return int(found.offset)

    assert [offset(timestamp) for timestamp in (-2, -1, 1001, 5000)] == [0, 3, 1, -1]


def join_group(wire: Wire, version: int) -> None:
    def join(member_id: str) -> Any:
        return wire.ask(
            "JoinGroup",
            version,
            group_id="new",
            session_timeout_ms=1000,
            rebalance_timeout_ms=1000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b"m"}],
        )

    answer = join("")
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = join(answer.member_id)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
    assert answer.leader == answer.member_id == only(answer.members).member_id
    assert only(answer.members).metadata == b"m"


def consumer_group_heartbeat(wire: Wire, version: int) -> None:
    def beat(**fields: Any) -> Any:
        return wire.ask("ConsumerGroupHeartbeat", version, group_id="new", member_id="m", **fields)

    joined = beat(member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[])
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "m", 2)
    assigned = only(joined.assignment.topic_partitions)
    assert (assigned.topic_id, assigned.partitions) == (wire.topic_id, [0, 1])
    assert beat(member_epoch=2).assignment is None
    assert beat(member_epoch=9).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    if version >= 1:
        resubscribed = beat(member_epoch=2, subscribed_topic_names=[], subscribed_topic_regex="t+")
        assert (resubscribed.error_code, resubscribed.member_epoch) == (0, 3)


def consumer_group_describe(wire: Wire, version: int) -> None:
    consumer_group_heartbeat(wire, 0)
    found, classic, missing = wire.ask("ConsumerGroupDescribe", version, group_ids=["new", "g", "none"]).groups
    assert (found.error_code, found.group_state, found.group_epoch, found.assignor_name) == (0, "Stable", 2, "uniform")
    member = only(found.members)
    for assignment in (member.assignment, member.target_assignment):
        topic = only(assignment.topic_partitions)
        assert (topic.topic_name, topic.partitions) == ("t", [0, 1])
    assert member.member_type == (1 if version >= 1 else -1)
    assert classic.error_code == missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def sync_group(wire: Wire, version: int) -> None:
    answer = wire.ask(
        "SyncGroup",
        version,
        group_id="g",
        generation_id=1,
        member_id="nobody",
        protocol_type="consumer",
        protocol_name="range",
    )
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def heartbeat(wire: Wire, version: int) -> None:
    answer = wire.ask("Heartbeat", version, group_id="g", generation_id=1, member_id="nobody")
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def leave_group(wire: Wire, version: int) -> None:
    answer = wire.ask("LeaveGroup", version, group_id="g", member_id="nobody", members=[{"member_id": "nobody"}])
    assert (answer if version < 3 else only(answer.members)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def offset_commit(wire: Wire, version: int) -> None:
    partition = {"partition_index": 1, "committed_offset": 9, "committed_metadata": None}
    answer = wire.ask(
        "OffsetCommit",
        version,
        group_id="g",
        member_id="",
        topics=[{"name": "t", "topic_id": wire.topic_id, "partitions": [partition]}],
    )
    answer = only(only(answer.topics).partitions)
    assert (answer.partition_index, answer.error_code) == (1, 0)
    assert wire.cluster.groups.offsets.of("g")[Partition("t", 1)] == CommittedOffset(9, -1, "", wire.cluster.now_ms)


def offset_fetch(wire: Wire, version: int) -> None:
    one = {"name": "t", "partition_indexes": [0, 1]}
    group = {"group_id": "g", "topics": [{"name": "t", "topic_id": wire.topic_id, "partition_indexes": [0, 1]}]}
    answer = wire.ask("OffsetFetch", version, group_id="g", topics=[one], groups=[group])
    partitions = only((answer if version < 8 else only(answer.groups)).topics).partitions
    assert [(each.committed_offset, each.metadata) for each in partitions] == [(2, "note"), (-1, "")]
    if version >= 2:
        answer = wire.ask("OffsetFetch", version, group_id="g", topics=None, groups=[{"group_id": "g", "topics": None}])
        assert len(only((answer if version < 8 else only(answer.groups)).topics).partitions) == 1


def offset_delete(wire: Wire, version: int) -> None:
    partitions = [{"partition_index": 0}]
    answer = wire.ask("OffsetDelete", version, group_id="g", topics=[{"name": "t", "partitions": partitions}])
    assert only(only(answer.topics).partitions).error_code == 0
    assert not wire.cluster.groups.offsets.of("g")


def offset_for_leader_epoch(wire: Wire, version: int) -> None:
    partition = {"partition": 0, "current_leader_epoch": 0, "leader_epoch": 0}
    answer = wire.ask(
        "OffsetForLeaderEpoch", version, replica_id=-1, topics=[{"topic": "t", "partitions": [partition]}]
    )
    answer = only(only(answer.topics).partitions)
    assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (0, 0, 3)


def init_producer_id(wire: Wire, version: int) -> None:
    request = client_request("InitProducerId", version, transactional_id=None, transaction_timeout_ms=1000)
    answer = wire.exchange(request)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert answer.producer_id != wire.exchange(request).producer_id


def describe_groups(wire: Wire, version: int) -> None:
    answer = wire.ask("DescribeGroups", version, groups=["g", "none"])
    found, missing = answer.groups
    assert (found.group_state, found.error_code, missing.group_state) == ("Empty", 0, "Dead")
    assert missing.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)


def list_groups(wire: Wire, version: int) -> None:
    def listed(**filters: Any) -> list[str]:
        fields = {"states_filter": [], "types_filter": []} | filters
        return [each.group_id for each in wire.ask("ListGroups", version, **fields).groups]

    assert listed() == ["g"]
    if version >= 4:
        assert listed(states_filter=["EMPTY"]) == ["g"]
        assert listed(states_filter=["Stable"]) == []
    if version >= 5:
        assert listed(types_filter=["consumer"]) == []


def delete_groups(wire: Wire, version: int) -> None:
    answer = wire.ask("DeleteGroups", version, groups_names=["g", "none"])
    assert [each.error_code for each in answer.results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]


def create_topics(wire: Wire, version: int) -> None:
    def new(name: str, partitions: int, replicas: int) -> Any:
        return {"name": name, "num_partitions": partitions, "replication_factor": replicas}

    wanted = [new("n", 4, 1), new("t", 1, 1), new("a/b", 1, 1), new("z", 0, 1), new("r", 1, 3), new("d", -1, -1)]
    answer = wire.ask("CreateTopics", version, topics=wanted, timeout_ms=1)
    assert [each.error_code for each in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.NONE,
    ]
    topic = wire.cluster.topics.get("n")
    assert topic is not None
    assert len(topic.partitions) == 4
    reply = wire.ask("CreateTopics", version, topics=[new("v", 1, 1)], timeout_ms=1, validate_only=True)
    assert only(reply.topics).error_code == 0
    assert wire.cluster.topics.get("v") is None


def create_partitions(wire: Wire, version: int) -> None:
    wanted = [{"name": "t", "count": 3}, {"name": "x", "count": 3}]
    request = client_request("CreatePartitions", version, topics=wanted, timeout_ms=1, validate_only=False)
    answer = wire.exchange(request)
    assert [each.error_code for each in answer.results] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert only(wire.cluster.topics).partitions[2].log.end_offset == 0
    again = wire.exchange(request)
    assert again.results[0].error_code == ErrorCode.INVALID_PARTITIONS


def delete_topics(wire: Wire, version: int) -> None:
    wanted = [{"name": "t"}, {"name": "x"}]
    answer = wire.ask("DeleteTopics", version, topics=wanted, topic_names=["t", "x"], timeout_ms=1)
    assert {each.name: each.error_code for each in answer.responses} == {
        "t": 0,
        "x": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert list(wire.cluster.topics) == []
    assert not wire.cluster.groups.offsets.of("g"), "what groups committed for the topic goes with it"


def describe_configs(wire: Wire, version: int) -> None:
    wanted = [
        {"resource_type": 2, "resource_name": "t", "configuration_keys": ["retention.ms"]},
        {"resource_type": 4, "resource_name": "1", "configuration_keys": None},
        {"resource_type": 2, "resource_name": "x", "configuration_keys": None},
        {"resource_type": 9, "resource_name": "x", "configuration_keys": None},
    ]
    answer = wire.ask("DescribeConfigs", version, resources=wanted)
    assert [each.error_code for each in answer.results] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    assert only(answer.results[0].configs).name == "retention.ms"
    assert "group.initial.rebalance.delay.ms" in {config.name for config in answer.results[1].configs}


def describe_cluster(wire: Wire, version: int) -> None:
    answer = wire.ask("DescribeCluster", version)
    assert (only(answer.brokers).broker_id, answer.controller_id) == (1, 1)


MODULES = (
    admin_exchanges, config_exchanges, security_exchanges, share_exchanges, streams_exchanges, transaction_exchanges,
)  # fmt: skip
HERE = {name: value for module in MODULES for name, value in vars(module).items()} | globals()


def exchange_of(name: str) -> Callable[[Wire, int], None]:
    """The function that has the API's name: ``list_groups`` for ListGroups."""
    found: Callable[[Wire, int], None] = HERE[re.sub(r"\B(?=[A-Z])", "_", name).lower()]
    return found


@pytest.mark.parametrize(
    ("name", "version"),
    [(api.name, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)],
)
def test_every_version_is_answered(name: str, version: int) -> None:
    exchange_of(name)(Wire(), version)


def test_kept_metadata_follow_every_change_of_the_topics() -> None:
    wire = Wire()

    def seen() -> dict[str, int]:
        answer = wire.ask("Metadata", 9, topics=None)
        return {topic.name: len(topic.partitions) for topic in answer.topics}

    assert seen() == {"t": 2}
    new = wire.cluster.topics.create("new", 3)
    assert seen() == {"t": 2, "new": 3}
    wire.cluster.topics.grow(new, 5)
    assert seen() == {"t": 2, "new": 5}
    wire.cluster.topics.delete(new)
    assert seen() == {"t": 2}


def test_asking_for_a_topic_makes_it_if_the_client_lets_it() -> None:
    wire = Wire()

    def ask(name: str, create: bool) -> int:
        topic = {"name": name}
        return int(only(wire.ask("Metadata", 9, topics=[topic], allow_auto_topic_creation=create).topics).error_code)

    assert ask("new", create=False) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert ask("new", create=True) == ErrorCode.NONE
    assert ask("a/b", create=True) == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_fetch_with_too_small_limits_still_gets_one_batch() -> None:
    wire = Wire()
    log = wire.cluster.topics.log("t", 1)
    assert log is not None
    log.append(batch([b"x"]))
    for partition_limit, limit in ((1, 10_000), (10_000, 1), (0, 0)):
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": partition_limit}
        answer = wire.ask(
            "Fetch",
            11,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=limit,
            topics=[{"topic": "t", "partitions": [partition, {**partition, "partition": 1}]}],
        )
        first, second = only(answer.responses).partitions
        assert first.records
        assert not second.records, "one is enough not to get stuck"


STRINGS = st.sampled_from(["", "t", "g", "i1", "a/b", "é" * 200, "consumer", "range"])
NUMBERS = st.sampled_from([0, 1, -1, 2, -2, 7, 127, -128])
BLOBS = st.sampled_from([b"", b"\x00", b"\xff" * 70, batch([b"x"]), batch([b"x"], producer=(1, 0, 0))])
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "float64", "bitfield"), NUMBERS),
    "bool": st.booleans(),
    "string": STRINGS,
    "bytes": BLOBS,
    "records": BLOBS,
    "uint16": st.sampled_from([0, 1, 65_535]),
    "uuid": st.sampled_from([None, UUID(int=1)]),
}


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@examples(6)
@given(data=st.data())
def test_no_request_that_the_schema_allows_breaks_its_handler(api: Api, data: st.DataObject) -> None:
    request_class, response_class = (client_message(each.__name__) for each in (api.request, api.response))
    wire = Wire()
    for _ in range(2):  # the second one meets what the first one left
        version = data.draw(st.integers(api.min_version, api.max_version))
        request = data.draw(
            st.builds(
                request_class,
                version=st.just(version),
                **contents(request_class.fields.values(), version, VALUES, most=3),
            )
        )
        for answer in wire.send(request_bytes(request)):
            if isinstance(answer.response, EncodedBody):
                response_class.decode(b"".join(answer.response.pieces), version=version)
            elif not isinstance(answer.response, NoAnswer | HangUp):
                encoded = bytes(encode_response(answer.response, answer.call.version, 7))
                if not (api.name == "ApiVersions" and answer.response.error_code):  # read as v0 by this client
                    response_class.decode(encoded[4:], version=answer.call.version, header=True)


def test_a_topic_may_say_how_large_its_batches_can_be() -> None:
    wire = Wire()

    def create(name: str, limit: str) -> int:
        configs = [{"name": "max.message.bytes", "value": limit}]
        topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs}
        return int(only(wire.ask("CreateTopics", 7, topics=[topic], timeout_ms=1).topics).error_code)

    assert [create("a", "x"), create("b", "-1"), create("small", "100")] == [40, 40, 0]
    small = wire.cluster.topics.get("small")
    assert small is not None
    wire.cluster.topics.grow(small, 2)
    for partition in small.partitions:
        assert partition.log.append(batch([b"x"])).error is ErrorCode.NONE
        assert partition.log.append(batch([b"x" * 100])).error is ErrorCode.MESSAGE_TOO_LARGE


def test_producers_of_two_coordinators_have_no_id_in_common() -> None:
    ids = {Wire().ask("InitProducerId", 2, transactional_id=None).producer_id for _ in range(20)}
    assert len(ids) == 20
    assert min(ids) >= 0
