"""An older commit must not set back what a newer one has committed: commits are tried again, and go two ways."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from kafka.protocol.consumer import OffsetCommitRequest

from loadwise.assignor.clients.kafka_python.internals import _Manager
from loadwise.assignor.clients.member_commits import NewestCommits


def test_a_commit_that_is_tried_again_leaves_out_what_a_newer_one_has():
    commits = NewestCommits()
    older = commits.begin({"a": 1, "b": 1})
    newer = commits.begin({"b": 2, "c": 2})
    commits.end()
    assert commits.of(older, {"a": 1, "b": 1}) == {"a": 1}
    assert commits.of(newer, {"b": 2, "c": 2}) == {"b": 2, "c": 2}


def test_offsets_of_ended_commits_are_forgotten():
    commits = NewestCommits()
    commits.begin({"a": 1})
    commits.end()
    assert not commits._newest


class Connections:
    """kafka-python's connection manager: what it was asked to send, each answered when the test says so."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, asyncio.Future[str]]] = []
        self._net = SimpleNamespace(sleep=asyncio.sleep)

    def send(self, _: object, *, node_id: str) -> asyncio.Future[str]:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.sent.append((node_id, answer))
        return answer


async def test_a_commit_by_the_other_connection_waits_for_older_ones(until):
    connections = Connections()
    coordinator = SimpleNamespace(_generation=None, rebalance_in_progress=lambda: True, answer_beside_join=None)
    manager = _Manager(connections, coordinator)
    nodes = ["coordinator", "coordinator", "broker", "coordinator"]
    commits = [asyncio.ensure_future(manager.send(OffsetCommitRequest(), node_id=node)) for node in nodes]
    for sent in (2, 3, 4):
        await until(lambda sent=sent: len(connections.sent) == sent)
        await asyncio.sleep(0.02)  # several looks of those that wait
        assert [node for node, _ in connections.sent] == nodes[:sent]
        for _, answer in connections.sent:
            if not answer.done():
                answer.set_result("answered")
    assert await asyncio.gather(*commits) == ["answered"] * 4
