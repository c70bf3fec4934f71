"""Requests of share groups (KIP-932) and streams groups (KIP-1071) for comparing what two authorizers make of them.

As in `access_requests`; ``s`` is a share group with a member, ``e`` one without, ``k`` a streams group with a member.
"""

from __future__ import annotations

from typing import Any

import client_messages
from access_requests import Asked, Scene, add, both

GROUP_REQUESTS: list[Asked] = []

S = K = client_messages


def _beat(scene: Scene, names: str) -> dict[str, Any]:
    return {
        "group_id": scene.name("s"), "member_id": "x", "member_epoch": 5, "rack_id": None,
        "subscribed_topic_names": [scene.name(each) for each in names],
    }  # fmt: skip


for _names in ("t", "to"):
    add(f"ShareGroupHeartbeat of {_names}", S.ShareGroupHeartbeatRequest, S.ShareGroupHeartbeatResponse, 1,
        to=GROUP_REQUESTS)(lambda scene, names=_names: _beat(scene, names))  # fmt: skip


@add("ShareGroupDescribe", S.ShareGroupDescribeRequest, S.ShareGroupDescribeResponse, 1, to=GROUP_REQUESTS)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_ids": [scene.name(each) for each in "sz"], "include_authorized_operations": True}


@add("ShareFetch", S.ShareFetchRequest, S.ShareFetchResponse, 1, to=GROUP_REQUESTS)
def _(scene: Scene) -> dict[str, Any]:
    # No topics: where Kafka has nothing to give yet, it may answer with a row or without one.
    return {
        "group_id": scene.name("s"), "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "share_session_epoch": 0, "max_wait_ms": 0,
        "min_bytes": 0, "max_bytes": 1000, "max_records": 1, "batch_size": 1, "topics": [], "forgotten_topics_data": [],
    }  # fmt: skip


@add("ShareFetch of topics", S.ShareFetchRequest, S.ShareFetchResponse, 1, 2, to=GROUP_REQUESTS, only_errors=True)
def _(scene: Scene) -> dict[str, Any]:
    row = {"partition_index": 0, "acknowledgement_batches": []}
    return {
        "group_id": scene.name("s"), "member_id": "AAAAAAAAAAAAAAAAAAAAAg", "share_session_epoch": 0, "max_wait_ms": 0,
        "min_bytes": 1, "max_bytes": 1000, "max_records": 1, "batch_size": 1,
        "topics": [{"topic_id": each, "partitions": [row]} for each in scene.topic_ids.values()],
        "forgotten_topics_data": [],
    }  # fmt: skip


@add("ShareAcknowledge", S.ShareAcknowledgeRequest, S.ShareAcknowledgeResponse, 1, to=GROUP_REQUESTS)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("s"), "member_id": "x", "share_session_epoch": 1, "topics": []}


@add("DescribeShareGroupOffsets", S.DescribeShareGroupOffsetsRequest, S.DescribeShareGroupOffsetsResponse, 0, 1,
     to=GROUP_REQUESTS)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    topics = both(scene, "topic_name", {"partitions": [0]})
    return {"groups": [{"group_id": scene.name(each), "topics": topics} for each in "se"]}


@add("DescribeShareGroupOffsets of all", S.DescribeShareGroupOffsetsRequest, S.DescribeShareGroupOffsetsResponse, 1,
     to=GROUP_REQUESTS)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    return {"groups": [{"group_id": scene.name(each), "topics": None} for each in "se"]}


def _topology(*names: str) -> Any:
    topology = K.StreamsGroupHeartbeatRequest.Topology
    part = topology.Subtopology(
        subtopology_id="0",
        source_topics=list(names),
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    return topology(epoch=0, subtopologies=[part])


def streams_beat(group_id: str, member_id: str, epoch: int, *names: str) -> dict[str, Any]:
    """The body of a streams group's heartbeat whose topology reads these topics."""
    return {
        "group_id": group_id, "member_id": member_id, "member_epoch": epoch, "endpoint_information_epoch": -1,
        "instance_id": None, "rack_id": None, "rebalance_timeout_ms": 300_000, "topology": _topology(*names),
        "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "process_id": "p", "user_endpoint": None,
        "client_tags": None, "task_offsets": None, "task_end_offsets": None, "shutdown_application": False,
    }  # fmt: skip


for _names in ("t", "to", "m"):
    add(f"StreamsGroupHeartbeat of {_names}", K.StreamsGroupHeartbeatRequest, K.StreamsGroupHeartbeatResponse, 0,
        to=GROUP_REQUESTS)(
        lambda scene, names=_names: streams_beat(scene.name("k"), "x", 5, *map(scene.name, names))
    )  # fmt: skip


@add("StreamsGroupDescribe", K.StreamsGroupDescribeRequest, K.StreamsGroupDescribeResponse, 0, to=GROUP_REQUESTS)
def _(scene: Scene) -> dict[str, Any]:
    return {"group_ids": [scene.name(each) for each in "kz"], "include_authorized_operations": True}


# What changes something comes last.


@add("AlterShareGroupOffsets", S.AlterShareGroupOffsetsRequest, S.AlterShareGroupOffsetsResponse, 0, to=GROUP_REQUESTS)
def _(scene: Scene) -> dict[str, Any]:
    topics = both(scene, "topic_name", {"partitions": [{"partition_index": 0, "start_offset": 0}]})
    return {"group_id": scene.name("e"), "topics": topics}


@add("DeleteShareGroupOffsets", S.DeleteShareGroupOffsetsRequest, S.DeleteShareGroupOffsetsResponse, 0,
     to=GROUP_REQUESTS)  # fmt: skip
def _(scene: Scene) -> dict[str, Any]:
    return {"group_id": scene.name("e"), "topics": both(scene, "topic_name")}
