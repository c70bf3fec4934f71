"""What a connection that closes changes in a data directory, and who is told of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

from client_messages import ShareFetchResponse, client_request
from peers import Peer, produce

from loadwise.coordinator import Coordinator
from loadwise.coordinator.share.feature import ShareGroups


def share_fetch(topic_id: UUID, member_id: str, max_wait_ms: int) -> Any:
    row = {"partition_index": 0}
    return client_request(
        "ShareFetch", 1, group_id="g", member_id=member_id, share_session_epoch=0, max_wait_ms=max_wait_ms,
        min_bytes=1, max_bytes=1_000_000, max_records=500, batch_size=500,
        topics=[{"topic_id": topic_id, "partitions": [row]}],
    )  # fmt: skip


def acquired(response: Any) -> list[tuple[int, int]]:
    rows = [row for topic in response.responses for row in topic.partitions]
    return [(each.first_offset, each.delivery_count) for row in rows for each in row.acquired_records]


async def test_records_of_a_share_consumer_that_is_gone_are_given_to_one_that_waits(tmp_path: Path) -> None:
    """At once, though nothing else happens: no request comes, and the clock stands."""
    async with Coordinator({"t": 1}, data_dir=tmp_path) as coordinator:
        coordinator.clock.freeze()
        topic = coordinator.cluster.topics.get("t")
        assert topic is not None
        gone, waiting = await Peer.connect(coordinator), await Peer.connect(coordinator)
        start = {"partition_index": 0, "start_offset": 0}
        answer = await gone.ask(
            "AlterShareGroupOffsets", 0, group_id="g", topics=[{"topic_name": "t", "partitions": [start]}]
        )
        assert answer.error_code == 0
        gone.send(produce(acks=0), 2)
        first = await gone.exchange(share_fetch(topic.id, "a", 0))
        assert acquired(first) == [(0, 1)]
        waiting.send(share_fetch(topic.id, "b", 600_000), 3)
        while not ShareGroups.of(coordinator.cluster).fetches:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0)
        await gone.close()
        assert acquired(await waiting.read(ShareFetchResponse, 1)) == [(0, 2)]
        await waiting.close()
