"""Small requests with long answers: the loop serves others between the turns, and each row is true at its time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest
from client_messages import client_request, client_response
from own_log import own_log
from peers import Peer, answers
from requests_for_all import BY_NULL, fetch, offset_commit

from loadwise.coordinator import Coordinator, turns
from loadwise.coordinator.apis import list_config_resources_74 as list_config_resources
from loadwise.coordinator.handling import commits
from loadwise.coordinator.routing import router
from loadwise.protocol.error_codes import ErrorCode

TOPICS = [f"topic-{number:03}" for number in range(300)]
ALL = BY_NULL | {"Metadata v1": client_request("Metadata", 1, topics=None)}

NAMED: dict[str, Any] = {
    "ListOffsets": client_request(
        "ListOffsets", 5,
        topics=[{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in TOPICS],
    ),
    "OffsetCommit": offset_commit(TOPICS, "g"),
    "Fetch": fetch(TOPICS, max_wait_ms=600_000),
}  # fmt: skip
GONE = [TOPICS[0], TOPICS[150], TOPICS[-1]]


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
        assert (await peer.exchange(offset_commit(TOPICS, "g"))).topics[0].partitions[0].error_code == 0
        await peer.close()
        for module in (turns, commits):
            monkeypatch.setattr(module, "ROWS_IN_A_TURN", 5)
        yield running


def unfinished(coordinator: Coordinator) -> bool:
    return coordinator._embedded.router.has_unfinished


async def deleted_meanwhile(request: Any, coordinator: Coordinator, peer: Peer, other: Peer) -> Any:
    """The answer to a request while some topics are deleted."""
    peer.send(request)
    while not unfinished(coordinator):
        assert await answers(other)
    deleted = await other.ask("DeleteTopics", 3, topic_names=GONE, timeout_ms=1000)
    assert [each.error_code for each in deleted.responses] == [0, 0, 0]
    assert unfinished(coordinator)
    return await peer.read(client_response(request), request.API_VERSION)


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
    answer = await deleted_meanwhile(ALL[api], coordinator, peer, other)
    found = named(api, answer)
    assert [name for name in found if name not in GONE] == [name for name in TOPICS if name not in GONE]
    if api != "OffsetFetch v7":  # the offsets of a deleted topic are those of before
        assert TOPICS[-1] not in found, "it was deleted before its row was made"
    if api.startswith("Metadata"):
        assert all(topic.error_code == 0 and len(topic.partitions) == 1 for topic in answer.topics)
        again = await peer.exchange(ALL[api])
        assert named(api, again) == [name for name in TOPICS if name not in GONE], "the mixture is not cached"


@pytest.mark.parametrize("api", NAMED)
async def test_a_named_topic_that_is_deleted_meanwhile_has_the_error_of_its_turn(
    api: str, coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    """A fetch does not wait then. Offsets that were committed before go with the topic."""
    answer = await deleted_meanwhile(NAMED[api], coordinator, peer, other)
    topics = answer.responses if api == "Fetch" else answer.topics
    errors = {_name(topic): topic.partitions[0].error_code for topic in topics}
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(errors) == TOPICS, "Kafka answers first what does not exist"
    assert {errors[name] for name in TOPICS if name not in GONE} == {0}
    assert errors[TOPICS[-1]] == missing
    assert {errors[name] for name in GONE} <= {0, missing}
    if api == "OffsetCommit":
        stored = await peer.exchange(ALL["OffsetFetch"])
        assert named("OffsetFetch", stored) == [name for name in TOPICS if name not in GONE]


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
