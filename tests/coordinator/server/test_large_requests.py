"""Requests with many elements: they are answered in turns, with the loop free between them, as if they were small."""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from client_messages import ConsumerGroupHeartbeatResponse, client_request, request_bytes
from kafka.protocol.admin import DescribeGroupsResponse
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import FindCoordinatorResponse
from large_frames import large_frame
from peers import Peer, answers
from record_batches import batch
from topics import WAIT_S
from wires import APIS

from loadwise.coordinator import Coordinator
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS
from loadwise.coordinator.serving.connections import ServerLimits
from loadwise.protocol.decoding import AT_ONCE
from loadwise.protocol.error_codes import ErrorCode

MANY = 2 * AT_ONCE + 500


@pytest.fixture
async def coordinator() -> AsyncIterator[Coordinator]:
    async with Coordinator(topics={"t": MANY}) as coordinator, asyncio.timeout(WAIT_S):
        yield coordinator


async def test_the_answer_has_the_order_of_the_request(peer: Peer) -> None:
    keys = [f"group-{number}" for number in range(MANY)]
    peer.send(client_request("FindCoordinator", 4, key_type=0, coordinator_keys=keys))
    peer.send(client_request("DescribeGroups", 5, groups=["g"]), correlation_id=8)
    found = await peer.read(FindCoordinatorResponse, 4)
    assert [each.key for each in found.coordinators] == keys
    assert {(each.error_code, each.node_id) for each in found.coordinators} == {(0, 1)}
    assert [each.group_id for each in (await peer.read(DescribeGroupsResponse, 5)).groups] == ["g"]


async def test_a_topic_is_answered_once_however_many_partitions_it_has(peer: Peer) -> None:
    rows = [{"partition_index": number, "timestamp": -1} for number in range(MANY)]
    few = {"name": "unknown", "partitions": rows[:3]}
    answer = await peer.ask("ListOffsets", 5, topics=[few, {"name": "t", "partitions": rows}])
    assert [(each.name, len(each.partitions)) for each in answer.topics] == [("unknown", 3), ("t", MANY)]
    assert [(each.partition_index, each.error_code) for each in answer.topics[1].partitions] == [
        (number, 0) for number in range(MANY)
    ]


async def test_offsets_of_many_partitions_are_committed_and_read_back(peer: Peer) -> None:
    rows = [
        {"partition_index": number, "committed_offset": number + 1, "committed_metadata": None}
        for number in range(MANY)
    ]
    commit = client_request("OffsetCommit", 8, group_id="g", member_id="", topics=[{"name": "t", "partitions": rows}])
    (committed,) = (await peer.exchange(commit)).topics
    assert Counter(each.error_code for each in committed.partitions) == {0: MANY}
    asked = {"name": "t", "partition_indexes": list(range(MANY))}
    fetch = client_request(
        "OffsetFetch", 8, groups=[{"group_id": "g", "topics": [asked]}, {"group_id": "none", "topics": [asked]}],
        require_stable=False,
    )  # fmt: skip
    found, none = (await peer.exchange(fetch)).groups
    assert [each.committed_offset for each in found.topics[0].partitions] == [number + 1 for number in range(MANY)]
    assert {each.committed_offset for each in none.topics[0].partitions} == {-1}
    assert (found.group_id, len(found.topics), none.group_id, len(none.topics)) == ("g", 1, "none", 1)


def fetch_of_all(max_wait_ms: int) -> FetchRequest:
    rows = [{"partition": number, "fetch_offset": 0, "partition_max_bytes": 10_000} for number in range(MANY)]
    return client_request(
        "Fetch", 11, max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=100_000,
        topics=[{"topic": "t", "partitions": rows}],
    )  # fmt: skip


@pytest.mark.parametrize("partition", [0, MANY - 1])
async def test_a_fetch_of_many_partitions_waits_until_one_of_them_has_a_record(
    partition: int, coordinator: Coordinator, peer: Peer
) -> None:
    other = await Peer.connect(coordinator)
    peer.send(fetch_of_all(max_wait_ms=600_000))
    while not coordinator.cluster.fetches:
        assert await answers(other)
    data = {"index": partition, "records": batch([b"x"])}
    other.send(client_request("Produce", 9, acks=1, timeout_ms=1, topic_data=[{"name": "t", "partition_data": [data]}]))
    (found,) = (await peer.read(FetchResponse, 11)).responses
    assert [each.partition_index for each in found.partitions] == list(range(MANY))
    assert [each.partition_index for each in found.partitions if each.records] == [partition]
    assert not coordinator.cluster.fetches
    await other.close()


async def test_a_connection_that_is_gone_ends_its_request(coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    peer.send(fetch_of_all(max_wait_ms=600_000))
    while not coordinator.cluster.fetches:
        assert await answers(other)
    await peer.close()
    while coordinator.cluster.fetches:
        assert await answers(other)


async def test_bytes_that_are_no_request_are_refused_before_any_of_it_is_handled(
    coordinator: Coordinator, peer: Peer
) -> None:
    keys = ["g"] * MANY
    request = client_request("FindCoordinator", 4, key_type=0, coordinator_keys=keys)
    frame = request_bytes(request)[:-2]  # ends in the last name
    peer.writer.write(struct.pack(">i", len(frame)) + frame)
    assert await peer.is_hung_up_on()
    assert coordinator.cluster.topics.get("__consumer_offsets") is None


async def test_a_request_that_is_answered_as_a_whole_has_so_many_elements(peer: Peer) -> None:
    api = next(each for each in APIS.values() if each.name == "ConsumerGroupHeartbeat")
    refused = []
    for number in (12_000, 13_000):  # 10,000 and one for each partition
        frame = large_frame(api, 1, ("subscribed_topic_names",), number)
        peer.writer.write(struct.pack(">i", len(frame)) + frame)
        refused.append((await peer.read(ConsumerGroupHeartbeatResponse, 1)).error_code == ErrorCode.INVALID_REQUEST)
    assert refused == [False, True]


async def test_a_member_that_owns_more_partitions_than_that_is_answered() -> None:
    limits = ServerLimits(max_whole_elements=10)
    async with Coordinator(topics={"t": MANY}, limits=limits) as coordinator, asyncio.timeout(WAIT_S):
        peer = await Peer.connect(coordinator)
        joined = await peer.exchange(owning(0, []))
        (assigned,) = joined.assignment.topic_partitions
        owned = {"topic_id": assigned.topic_id, "partitions": assigned.partitions}
        answer = await peer.exchange(owning(joined.member_epoch, [owned]))
        assert (len(assigned.partitions), answer.error_code) == (MANY, 0)
        more = await peer.exchange(owning(joined.member_epoch, [owned] * 2))
        assert more.error_code == ErrorCode.INVALID_REQUEST
        await peer.close()


async def test_others_are_answered_while_a_request_is_read() -> None:
    limits = ServerLimits(max_whole_elements=10)
    async with Coordinator(topics={"t": MANY}, limits=limits) as coordinator, asyncio.timeout(WAIT_S):
        peer, other = await Peer.connect(coordinator), await Peer.connect(coordinator)
        joined = await peer.exchange(owning(0, []))
        owned = [{"topic_id": joined.assignment.topic_partitions[0].topic_id, "partitions": []}] * MANY
        many = client_request("DescribeGroups", 5, groups=["g"] * MANY)
        for request in (owning(joined.member_epoch, owned), many):
            peer.send(request)
            while not coordinator._embedded.router.has_unfinished:
                assert await answers(other)
            while coordinator._embedded.router.has_unfinished:
                assert await answers(other)
            assert await peer.frame()
        await peer.close()
        await other.close()


def owning(epoch: int, owned: list[Any]) -> Any:
    return client_request(
        "ConsumerGroupHeartbeat", 1, group_id="g", member_id="m", member_epoch=epoch, rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"], topic_partitions=owned,
    )  # fmt: skip


@pytest.mark.parametrize("over", [0, 1])
async def test_all_new_partitions_of_a_request_count_together(over: int, peer: Peer) -> None:
    """As on Apache Kafka: over 10,000 partitions in one request none is made."""
    many = MAX_NEW_PARTITIONS // 2
    rows = [
        {"name": f"new-{number}", "num_partitions": 3 if over and not number else 2, "replication_factor": 1}
        for number in range(many)
    ]
    answer = await peer.ask("CreateTopics", 2, topics=rows, timeout_ms=1000, validate_only=False)
    assert Counter(each.error_code for each in answer.topics) == {
        ErrorCode.POLICY_VIOLATION if over else ErrorCode.NONE: many
    }
    there = await peer.ask("Metadata", 4, topics=None, allow_auto_topic_creation=False)
    assert sum(each.name.startswith("new-") for each in there.topics) == (0 if over else many)


async def test_a_topic_that_is_named_twice_is_not_created(peer: Peer) -> None:
    """As on Apache Kafka, a topic that is named twice is refused, once."""
    names = ["twice", *(f"new-{number}" for number in range(MANY)), "twice", *["thrice"] * 3]
    rows = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
    answer = await peer.ask("CreateTopics", 2, topics=rows, timeout_ms=1000, validate_only=False)
    errors = Counter((each.name, each.error_code) for each in answer.topics)
    refused = {"twice", "thrice"}
    assert errors == {(name, ErrorCode.INVALID_REQUEST if name in refused else ErrorCode.NONE): 1 for name in names}
    every = await peer.ask("Metadata", 4, topics=None, allow_auto_topic_creation=False)
    assert not refused & {each.name for each in every.topics}
