"""Small requests with long answers: the loop serves others between the turns, and each row is true at its time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from client_messages import client_request, client_response
from own_log import own_log
from peers import Peer, answers

from loadwise.coordinator import Coordinator, router
from loadwise.coordinator.apis import commits
from loadwise.coordinator.apis import list_config_resources_74 as list_config_resources
from loadwise.protocol.error_codes import ErrorCode

TOPICS = [f"topic-{number:03}" for number in range(300)]
ALL: dict[str, Any] = {
    "Metadata": client_request("Metadata", 12, topics=None, include_topic_authorized_operations=True),
    "Metadata v1": client_request("Metadata", 1, topics=None),
    "DescribeTopicPartitions": client_request(
        "DescribeTopicPartitions", 0, topics=[], response_partition_limit=2000, cursor=None
    ),
    "DescribeLogDirs": client_request("DescribeLogDirs", 4, topics=None),
    "ListConfigResources": client_request("ListConfigResources", 1, resource_types=[2]),
    "ElectLeaders": client_request("ElectLeaders", 2, election_type=0, topic_partitions=None, timeout_ms=1000),
    "OffsetFetch": client_request("OffsetFetch", 8, groups=[{"group_id": "g", "topics": None}], require_stable=False),
    "OffsetFetch v7": client_request("OffsetFetch", 7, group_id="g", topics=None, require_stable=False),
}

NAMED: dict[str, Any] = {
    "ListOffsets": client_request(
        "ListOffsets", 5,
        topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in TOPICS],
    ),
    "OffsetCommit": client_request(
        "OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, member_id="",
        topics=[{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in TOPICS],
    ),
    "Fetch": client_request(
        "Fetch", 11, max_wait_ms=600_000, min_bytes=1,
        topics=[{"topic": name, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}]}
                for name in TOPICS],
    ),
}  # fmt: skip


def named(api: str, answer: Any) -> list[str]:
    """The topics of an answer, in its order."""
    match api:
        case "DescribeLogDirs":
            return [topic.name for topic in answer.results[0].topics]
        case "ListConfigResources":
            return [each.resource_name for each in answer.config_resources]
        case "ElectLeaders":
            return [each.topic for each in answer.replica_election_results]
        case "OffsetFetch":
            return [topic.name for topic in answer.groups[0].topics]
        case _:
            return [topic.name for topic in answer.topics]


@pytest.fixture
async def coordinator(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Coordinator]:
    async with Coordinator(topics=dict.fromkeys(TOPICS, 1)) as running:
        peer = await Peer.connect(running)
        rows = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]} for name in TOPICS]
        group = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": ""}
        assert (await peer.ask("OffsetCommit", 8, **group, topics=rows)).topics[0].partitions[0].error_code == 0
        await peer.close()
        for module in (router, commits):
            monkeypatch.setattr(module, "ROWS_IN_A_TURN", 5)
        yield running


def unfinished(coordinator: Coordinator) -> bool:
    return coordinator._embedded.router.has_unfinished


@pytest.mark.parametrize("api", ALL)
async def test_others_are_answered_meanwhile(api: str, coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    peer.send(ALL[api])
    while not unfinished(coordinator):
        assert await answers(other)
    waited = 0
    while unfinished(coordinator):
        assert await answers(other)
        waited += 1
    assert waited > 5
    answer = await peer.read(client_response(ALL[api]), ALL[api].API_VERSION)
    assert named(api, answer) == TOPICS


@pytest.mark.parametrize("api", ALL)
async def test_a_topic_that_is_deleted_meanwhile_is_left_out_or_whole(
    api: str, coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    peer.send(ALL[api])
    while not unfinished(coordinator):
        assert await answers(other)
    gone = [TOPICS[0], TOPICS[150], TOPICS[-1]]
    deleted = await other.ask("DeleteTopics", 3, topic_names=gone, timeout_ms=1000)
    assert [each.error_code for each in deleted.responses] == [0, 0, 0]
    assert unfinished(coordinator)
    answer = await peer.read(client_response(ALL[api]), ALL[api].API_VERSION)
    found = named(api, answer)
    assert [name for name in found if name not in gone] == [name for name in TOPICS if name not in gone]
    if api != "OffsetFetch v7":  # the offsets of a deleted topic are those of before
        assert TOPICS[-1] not in found, "it was deleted before its row was made"
    if api.startswith("Metadata"):
        assert all(topic.error_code == 0 and len(topic.partitions) == 1 for topic in answer.topics)
        again = await peer.exchange(ALL[api])
        assert named(api, again) == [name for name in TOPICS if name not in gone], "the mixture is not cached"


@pytest.mark.parametrize("api", NAMED)
async def test_a_named_topic_that_is_deleted_meanwhile_has_the_error_of_its_turn(
    api: str, coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    """A fetch does not wait then. Offsets that were committed before go with the topic."""
    peer.send(NAMED[api])
    while not unfinished(coordinator):
        assert await answers(other)
    gone = [TOPICS[0], TOPICS[150], TOPICS[-1]]
    await other.ask("DeleteTopics", 3, topic_names=gone, timeout_ms=1000)
    assert unfinished(coordinator)
    answer = await peer.read(client_response(NAMED[api]), NAMED[api].API_VERSION)
    topics = answer.responses if api == "Fetch" else answer.topics
    errors = {_name(topic): topic.partitions[0].error_code for topic in topics}
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(errors) == TOPICS
    assert {errors[name] for name in TOPICS if name not in gone} == {0}
    assert errors[TOPICS[-1]] == missing
    assert {errors[name] for name in gone} <= {0, missing}
    if api == "OffsetCommit":
        stored = await peer.exchange(ALL["OffsetFetch"])
        assert named("OffsetFetch", stored) == [name for name in TOPICS if name not in gone]


def _name(topic: Any) -> str:
    name: str = getattr(topic, "topic", None) or topic.name
    return name


async def test_requests_of_one_connection_are_answered_in_their_order(coordinator: Coordinator, peer: Peer) -> None:
    for number, request in enumerate(ALL.values()):
        peer.send(request, correlation_id=number)
    for number in range(len(ALL)):
        assert int.from_bytes((await peer.frame())[:4], "big") == number


async def test_long_requests_take_turns(
    coordinator: Coordinator, peer: Peer, other: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = coordinator._embedded.router
    turns = []

    def go_on(now_ms: int) -> Any:
        turns.append((next(iter(inner._unfinished)), len(inner._unfinished)))
        return router.Router.go_on(inner, now_ms)

    monkeypatch.setattr(inner, "go_on", go_on)
    peer.send(ALL["Metadata"])
    other.send(ALL["ElectLeaders"])
    await peer.frame()
    await other.frame()
    together = [token for token, number in turns if number == 2]
    assert len(together) > 10
    assert all(before != after for before, after in pairwise(together))


async def test_a_long_request_ends_with_its_connection(coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    peer.send(ALL["Metadata"])
    while not unfinished(coordinator):
        assert await answers(other)
    peer.writer.transport.abort()
    while coordinator._embedded.server._waiting:
        assert await answers(other)
    assert not unfinished(coordinator)


async def test_a_failure_in_a_later_turn_closes_the_connection(
    coordinator: Coordinator,
    peer: Peer,
    other: Peer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(list_config_resources, "_names", lambda *_: (str(10 // (9 - number)) for number in range(10)))
    peer.send(ALL["ListConfigResources"])
    assert await peer.is_hung_up_on()
    assert await answers(other)
    assert "ListConfigResources v1 cannot be answered" in caplog.text
    assert "failed to handle a request" in own_log(caplog)[-1].message


async def test_an_answer_that_cannot_be_encoded_is_an_error(
    coordinator: Coordinator, peer: Peer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_config_resources, "_names", lambda *_: ["x"] * 10 + ["x" * 40_000])
    answer = await peer.exchange(ALL["ListConfigResources"])
    assert (answer.error_code, answer.config_resources) == (-1, [])
    assert "cannot be encoded" in caplog.text
