"""A member of a streams group, request by request, as `test_every_version` asks a broker without a network."""

from __future__ import annotations

from typing import Any

from client_messages import client_request
from wires import Wire


def topology(source: str = "t", epoch: int = 0) -> Any:
    """One subtopology that reads a topic and keeps state."""
    changelog = {
        "name": "app-counts-changelog",
        "partitions": 0,
        "replication_factor": 0,
        "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
    }
    subtopology = {"subtopology_id": "0", "source_topics": [source], "state_changelog_topics": [changelog]}
    return {"epoch": epoch, "subtopologies": [subtopology]}


def streams_heartbeat(version: int = 0, **changes: Any) -> Any:
    """The request: a first heartbeat, but for what is changed."""
    fields = {
        "version": version,
        "group_id": "app",
        "member_id": "m",
        "member_epoch": 0,
        "endpoint_information_epoch": -1,
        "rebalance_timeout_ms": 45_000,
        "topology": topology(),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "p",
    }
    return client_request("StreamsGroupHeartbeat", **fields | changes)


def beat(wire: Wire, version: int = 0, **changes: Any) -> Any:
    """A heartbeat, and its answer."""
    return wire.exchange(streams_heartbeat(version, **changes))


def streams_group_heartbeat(wire: Wire, version: int) -> None:
    joined = beat(wire, version)
    assert (joined.error_code, joined.error_message, joined.member_id) == (0, None, "m")
    assert (joined.member_epoch, joined.heartbeat_interval_ms, joined.active_tasks) == (2, 500, [])
    assert [(each.status_code, each.status_detail) for each in joined.status] == [
        (3, "Internal topics are missing: app-counts-changelog")
    ]
    later = beat(wire, version, member_epoch=2, topology=None)
    assert (later.error_code, later.member_epoch, later.status) == (0, 3, [])
    assert [(each.subtopology_id, each.partitions) for each in later.active_tasks] == [("0", [0, 1])]
    assert (later.standby_tasks, later.warmup_tasks) == ([], [])
    unchanged = beat(wire, version, member_epoch=3, topology=None, active_tasks=later.active_tasks)
    assert (unchanged.member_epoch, unchanged.active_tasks, unchanged.standby_tasks) == (3, None, None)
    assert beat(wire, version, member_epoch=-1, topology=None).member_epoch == -1
    refused = beat(wire, version, topology=None)
    assert (refused.error_code, refused.error_message) == (42, "Topology must be non-null when (re-)joining.")


def streams_group_describe(wire: Wire, version: int) -> None:
    for epoch in (0, 2, 3):
        beat(wire, member_epoch=epoch, topology=None if epoch else topology())
    answer = wire.ask("StreamsGroupDescribe", version, group_ids=["app", "missing"], include_authorized_operations=True)
    found, missing = answer.groups
    assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
    (subtopology,) = found.topology.subtopologies
    assert (subtopology.source_topics, subtopology.state_changelog_topics[0].partitions) == (["t"], 2)
    (member,) = found.members
    assert (member.member_id, member.process_id, member.is_classic) == ("m", "p", False)
    for assignment in (member.assignment, member.target_assignment):
        assert [(each.subtopology_id, each.partitions) for each in assignment.active_tasks] == [("0", [0, 1])]
        assert (assignment.standby_tasks, assignment.warmup_tasks) == ([], [])
    assert (missing.error_code, missing.topology) == (69, None)
