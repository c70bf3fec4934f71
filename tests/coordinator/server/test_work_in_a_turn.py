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
from client_messages import client_request, request_bytes
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
}  # fmt: skip
"""Requests for all, by null or by name."""


class Work:
    """Counts the calls of functions in each turn of this loop."""

    def __init__(self) -> None:
        self.most = 0
        self.turns = 0
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
    reading = asyncio.ensure_future(peer.reader.readexactly(4))
    while not reading.done() and not (waits and work.turns > 100):
        assert await answers(other)
    counting.cancel()
    reading.cancel()
    with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
        await reading
    return work


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


async def test_it_is_counted(
    coordinator: Coordinator, peer: Peer, other: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "ROWS_IN_A_TURN", 1_000_000)
    work = await work_of(request_bytes(EVERYTHING["Metadata"]), peer, other)
    assert work.most > MOST
