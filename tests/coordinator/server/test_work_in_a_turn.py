"""No peer stops the loop: whatever it asks, one turn of the loop does a bounded amount of work.

Work is counted in calls of functions, since a time says little on a busy machine. The benchmark ``large_requests``
measures the times.
"""

from __future__ import annotations

import asyncio
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from client_messages import client_request, client_response, request_bytes
from large_frames import Path, arrays, large_frame
from peers import Peer, answers
from requests_for_all import BY_NULL, fetch, offset_commit
from topics import WAIT_S
from wires import APIS

from loadwise.coordinator import Acl, Coordinator, turns
from loadwise.coordinator.authorization.authorizer import Authorizer
from loadwise.protocol.messages import Api

MANY = 5_000
TOPICS = [f"topic-{number}" for number in range(MANY)]
MOST = 40_000
"""Calls in one turn: what 250 rows take in the slowest API, and half of it again."""
ARRAYS = [(api, path) for api in APIS.values() for path in arrays(api, api.max_version)]
WAITING = {"Produce", "JoinGroup"}
"""APIs whose answer may come later, or not at all."""
EVERYTHING: dict[str, Any] = {
    **BY_NULL,
    "ListGroups": client_request("ListGroups", 5),
    "Fetch": fetch(TOPICS, max_wait_ms=0),
    "OffsetCommit": offset_commit(TOPICS, "other"),
    "DeleteTopics": client_request("DeleteTopics", 3, topic_names=TOPICS, timeout_ms=1000),
    "CreateTopics": client_request(
        "CreateTopics", 2, timeout_ms=1000, validate_only=False,
        topics=[{"name": f"new-{name}", "num_partitions": 1, "replication_factor": 1} for name in TOPICS],
    ),
    "IncrementalAlterConfigs": client_request(
        "IncrementalAlterConfigs", 1, validate_only=False,
        resources=[
            {"resource_type": 2, "resource_name": name, "configs": [{"name": "retention.ms", "value": "1000"}]}
            for name in TOPICS
        ],
    ),
}  # fmt: skip
"""Requests for all, by null or by name."""
NEW = {"name": "new", "num_partitions": 1, "replication_factor": 1}


def rows(answer: Any) -> list[dict[str, Any]]:
    """The partitions that a heartbeat was answered with, as the next one reports them."""
    return [{"topic_id": each.topic_id, "partitions": each.partitions} for each in answer.assignment.topic_partitions]


class Work:
    """Counts the calls of functions in each turn of this loop."""

    def __init__(self) -> None:
        self.most = 0
        self.turns = 0
        self.answer = b""
        self._calls = 0

    async def count(self) -> None:
        """Run beside what is counted."""
        sys.setprofile(self._called)
        try:
            while True:
                self.most = max(self.most, self._calls)
                self.turns += 1
                self._calls = 0
                await asyncio.sleep(0)
        finally:
            sys.setprofile(None)

    def _called(self, _: Any, event: str, __: Any) -> None:
        if event in {"call", "c_call"}:
            self._calls += 1


@pytest.fixture
async def coordinator() -> AsyncIterator[Coordinator]:
    async with Coordinator(topics=dict.fromkeys(TOPICS, 1)) as running, asyncio.timeout(WAIT_S):
        yield running


async def work_of(frame: bytes, peer: Peer, other: Peer, *, waits: bool = False) -> Work:
    """Send a request; count the work until it is answered, while another peer is answered all the time."""
    work = Work()
    counting = asyncio.ensure_future(work.count())
    peer.writer.write(struct.pack(">i", len(frame)) + frame)
    reading = asyncio.ensure_future(peer.frame())
    while not reading.done() and not (waits and work.turns > 100):
        assert await answers(other)
    counting.cancel()
    reading.cancel()
    with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
        work.answer = await reading
    return work


class Watched:
    """A peer whose every request is counted."""

    def __init__(self, peer: Peer, other: Peer) -> None:
        self._peer = peer
        self._other = other
        self.most: dict[str, int] = {}
        """The most calls in a turn, by step."""

    async def ask(self, step: str, api: str, version: int, **values: Any) -> Any:
        request = client_request(api, version, **values)
        work = await work_of(request_bytes(request), self._peer, self._other)
        self.most[step] = work.most
        return client_response(request).decode(work.answer, version=version, header=True)

    async def beat(self, step: str, member_id: str, epoch: int, **fields: Any) -> Any:
        """A heartbeat of a consumer, which reports what it owns as a list of topics."""
        joining = {"rebalance_timeout_ms": 60_000, "topic_partitions": []} if epoch == 0 else {}
        answer = await self.ask(
            step, "ConsumerGroupHeartbeat", 1,
            **{"group_id": "consumers", "member_id": member_id, "member_epoch": epoch} | joining | fields,
        )  # fmt: skip
        assert answer.error_code == 0, (step, answer)
        return answer


@pytest.mark.parametrize("is_allowed", [True, False], ids=["allowed", "forbidden"])
@pytest.mark.parametrize(("api", "path"), ARRAYS, ids=[f"{api.name}-{'.'.join(path)}" for api, path in ARRAYS])
async def test_no_array_of_any_api_stops_the_loop(api: Api, path: Path, *, is_allowed: bool) -> None:
    async with Coordinator(topics={"a": 1}) as coordinator, asyncio.timeout(WAIT_S):
        if not is_allowed:
            coordinator.cluster.authorizer = Authorizer([Acl.of("User:ANONYMOUS", "READ", "GROUP", "g")])
        peer, other = await Peer.connect(coordinator), await Peer.connect(coordinator)
        work = await work_of(large_frame(api, api.max_version, path, MANY), peer, other, waits=api.name in WAITING)
        await peer.close()
        await other.close()
    assert work.most < MOST


@pytest.mark.parametrize("name", EVERYTHING)
async def test_no_request_for_all_stops_the_loop(name: str, coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    await peer.exchange(
        client_request(
            "OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, member_id="",
            topics=[{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in TOPICS],
        )
    )  # fmt: skip
    work = await work_of(request_bytes(EVERYTHING[name]), peer, other)
    assert work.most < MOST


@pytest.mark.parametrize(
    "subscribed", [{"subscribed_topic_regex": ".*"}, {"subscribed_topic_names": TOPICS}], ids=["by-regex", "by-name"]
)
async def test_no_member_of_a_group_with_all_topics_stops_the_loop(
    subscribed: dict[str, Any], coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    watched = Watched(peer, other)
    first = await watched.beat("join", "a", 0, **subscribed)
    assert len(first.assignment.topic_partitions) == MANY
    second = await watched.beat("second join", "b", 0, **subscribed)
    revoke = await watched.beat("revoke", "a", first.member_epoch, topic_partitions=rows(first))
    assert len(revoke.assignment.topic_partitions) == MANY // 2
    done = await watched.beat("revoked", "a", revoke.member_epoch, topic_partitions=rows(revoke))
    got = await watched.beat("get", "b", second.member_epoch)
    assert len(got.assignment.topic_partitions) == MANY // 2
    await watched.ask("describe", "ConsumerGroupDescribe", 1, group_ids=["consumers"])
    await other.ask("CreateTopics", 2, timeout_ms=1000, validate_only=False, topics=[NEW])
    await watched.beat("a new topic", "a", done.member_epoch)
    await watched.ask("remove", "LeaveGroup", 4, group_id="consumers", members=[{"member_id": "b"}])
    await watched.beat("leave", "a", -1)
    await watched.ask("delete", "DeleteGroups", 2, groups_names=["consumers"])
    assert not {step: most for step, most in watched.most.items() if most >= MOST}


async def test_no_member_of_a_share_group_with_all_topics_stops_the_loop(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    watched = Watched(peer, other)

    async def beat(step: str, member_id: str, epoch: int, **fields: Any) -> Any:
        its = {"group_id": "sharers", "member_id": member_id, "member_epoch": epoch} | fields
        answer = await watched.ask(step, "ShareGroupHeartbeat", 1, **its)
        assert answer.error_code == 0, (step, answer)
        return answer

    first = await beat("join", "a", 0, subscribed_topic_names=TOPICS)
    assert len(first.assignment.topic_partitions) == MANY
    second = await beat("second join", "b", 0, subscribed_topic_names=TOPICS)
    less = await beat("beat", "a", first.member_epoch)
    assert len(less.assignment.topic_partitions) == len(second.assignment.topic_partitions) == MANY // 2
    await beat("another subscription", "b", second.member_epoch, subscribed_topic_names=TOPICS[1:])
    await watched.ask("describe", "ShareGroupDescribe", 1, group_ids=["sharers"])
    await other.ask("CreateTopics", 2, timeout_ms=1000, validate_only=False, topics=[NEW])
    await beat("a new topic", "a", less.member_epoch)
    await beat("leave", "a", -1)
    await beat("last leave", "b", -1)
    await watched.ask("delete", "DeleteGroups", 2, groups_names=["sharers"])
    assert not {step: most for step, most in watched.most.items() if most >= MOST}


async def test_no_deletion_of_topics_beside_many_groups_stops_the_loop(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    for number in range(500):
        joins = {"member_id": "a", "member_epoch": 0, "subscribed_topic_names": [TOPICS[number]]}
        answer = await peer.ask("ShareGroupHeartbeat", 1, group_id=f"sharers-{number}", **joins)
        assert answer.error_code == 0
    work = await work_of(request_bytes(EVERYTHING["DeleteTopics"]), peer, other)
    assert work.most < MOST


async def producer_of(peer: Peer) -> dict[str, Any]:
    """A transactional producer, as requests name it."""
    producer = await peer.ask(
        "InitProducerId", 4, transactional_id="x", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
    )
    return {"transactional_id": "x", "producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}


async def add_all(peer: Peer, its: dict[str, Any]) -> None:
    """Let a producer write to all topics in its transaction."""
    old = {f"v3_and_below_{name}": value for name, value in its.items()}
    topics = [{"name": name, "partitions": [0]} for name in TOPICS]
    await peer.ask("AddPartitionsToTxn", 3, v3_and_below_topics=topics, **old)


@pytest.mark.parametrize("has_staged", [False, True], ids=["partitions", "offsets"])
async def test_no_end_of_a_transaction_stops_the_loop(
    has_staged: bool, coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    watched = Watched(peer, other)
    its = await producer_of(peer)
    if has_staged:
        topics = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in TOPICS]
        assert (await peer.ask("AddOffsetsToTxn", 3, group_id="g", **its)).error_code == 0
        await peer.ask("TxnOffsetCommit", 3, group_id="g", generation_id=-1, member_id="", topics=topics, **its)
    else:
        await add_all(peer, its)
    assert (await watched.ask("end", "EndTxn", 3, committed=True, **its)).error_code == 0
    assert watched.most["end"] < MOST
    assert (await peer.ask("EndTxn", 3, committed=True, **its)).error_code == 0, "it is complete"
    if has_staged:
        answer = await peer.ask("OffsetFetch", 7, group_id="g", topics=None, require_stable=True)
        assert len(answer.topics) == MANY


async def test_a_transaction_ends_though_its_producer_has_disconnected(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    its = await producer_of(peer)
    await add_all(peer, its)
    peer.send(client_request("EndTxn", 3, committed=True, **its))
    await peer.close()
    states = set()
    while "CompleteCommit" not in states:
        (row,) = (await other.ask("DescribeTransactions", 0, transactional_ids=["x"])).transaction_states
        states.add(row.transaction_state)
    assert states <= {"Ongoing", "PrepareCommit", "CompleteCommit"}


async def test_a_large_transaction_ends_though_the_clock_is_frozen_meanwhile(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    its = await producer_of(peer)
    await add_all(peer, its)
    peer.send(client_request("EndTxn", 3, committed=True, **its))
    state = ""
    while state != "PrepareCommit":
        (row,) = (await other.ask("DescribeTransactions", 0, transactional_ids=["x"])).transaction_states
        state = row.transaction_state
    coordinator.clock.freeze()
    answer = await peer.read(client_response(client_request("EndTxn", 3, committed=True, **its)), 3)
    assert answer.error_code == 0


async def test_it_is_counted(
    coordinator: Coordinator, peer: Peer, other: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ROWS_IN_A_TURN", 1_000_000)
    work = await work_of(request_bytes(EVERYTHING["Metadata"]), peer, other)
    assert work.most > MOST
