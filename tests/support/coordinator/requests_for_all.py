"""Requests that are answered with all topics, groups or offsets: those that null stands for, or that they name."""

from collections.abc import Iterable
from typing import Any

from client_messages import client_request

BY_NULL: dict[str, Any] = {
    "Metadata": client_request("Metadata", 12, topics=None, include_topic_authorized_operations=True),
    "DescribeTopicPartitions": client_request(
        "DescribeTopicPartitions", 0, topics=[], response_partition_limit=2000, cursor=None
    ),
    "DescribeLogDirs": client_request("DescribeLogDirs", 4, topics=None),
    "ListConfigResources": client_request("ListConfigResources", 1, resource_types=[2]),
    "ElectLeaders": client_request("ElectLeaders", 2, election_type=0, topic_partitions=None, timeout_ms=1000),
    "OffsetFetch": client_request("OffsetFetch", 8, groups=[{"group_id": "g", "topics": None}], require_stable=False),
    "OffsetFetch v7": client_request("OffsetFetch", 7, group_id="g", topics=None, require_stable=False),
}


def fetch(names: Iterable[str], max_wait_ms: int) -> Any:
    """Fetch the first partition of each topic."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100}]
    topics = [{"topic": name, "partitions": partitions} for name in names]
    return client_request("Fetch", 11, max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)


def offset_commit(names: Iterable[str], group_id: str) -> Any:
    """Commit an offset of the first partition of each topic, from outside the group."""
    partitions = [{"partition_index": 0, "committed_offset": 1}]
    topics = [{"name": name, "partitions": partitions} for name in names]
    member = {"generation_id_or_member_epoch": -1, "member_id": ""}
    return client_request("OffsetCommit", 8, group_id=group_id, **member, topics=topics)
