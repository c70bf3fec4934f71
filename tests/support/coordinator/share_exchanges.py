"""A request of each API of share groups (KIP-932), and what is looked at in its answer, for every version of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_messages import client_request
from wires import Wire

from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.protocol.error_codes import ErrorCode

_MEMBER = "m"


def _heartbeat(wire: Wire, epoch: int = 0, group: str = "s", version: int = 1) -> Any:
    return wire.ask(
        "ShareGroupHeartbeat",
        version,
        group_id=group,
        member_id=_MEMBER,
        member_epoch=epoch,
        subscribed_topic_names=None if epoch > 0 else ["t"],
    )


def _fetch(wire: Wire, epoch: int = 0, told: Sequence[tuple[int, int, int]] = (), version: int = 2) -> Any:
    batches = [{"first_offset": first, "last_offset": last, "acknowledge_types": [kind]} for first, last, kind in told]
    return wire.ask(
        "ShareFetch",
        version,
        group_id="s",
        member_id=_MEMBER,
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1_000_000,
        max_records=500,
        batch_size=500,
        share_acquire_mode=0,
        is_renew_ack=False,
        topics=[
            {"topic_id": wire.topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": batches}]}
        ],
    )


def _begin_at_the_start(wire: Wire) -> None:
    wire.cluster.resource_configs.put(ConfigResourceType.GROUP, "s", {"share.auto.offset.reset": "earliest"})
    _heartbeat(wire)


def share_group_heartbeat(wire: Wire, version: int) -> None:
    answer = _heartbeat(wire, version=version)
    (topic,) = answer.assignment.topic_partitions
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (0, _MEMBER, 3)
    assert (topic.topic_id, topic.partitions) == (wire.topic_id, [0, 1])
    assert _heartbeat(wire, 3, version=version).assignment is None
    assert _heartbeat(wire, -1, version=version).member_epoch == -1
    assert _heartbeat(wire, group="g", version=version).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def share_group_describe(wire: Wire, version: int) -> None:
    _heartbeat(wire)
    answer = wire.ask("ShareGroupDescribe", version, group_ids=["s", "g", "x"], include_authorized_operations=False)
    known, classic, missing = answer.groups
    (member,) = known.members
    assert (known.group_state, known.group_epoch, known.assignor_name) == ("Stable", 3, "simple")
    assert (member.member_id, member.subscribed_topic_names) == (_MEMBER, ["t"])
    assert [each.topic_name for each in member.assignment.topic_partitions] == ["t"]
    assert classic.error_code == missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def share_fetch(wire: Wire, version: int) -> None:
    _begin_at_the_start(wire)
    answer = _fetch(wire, version=version)
    (partition,) = answer.responses[0].partitions
    (acquired,) = partition.acquired_records
    assert (acquired.first_offset, acquired.last_offset, acquired.delivery_count) == (0, 2, 1)
    assert partition.records
    assert answer.acquisition_lock_timeout_ms == 30_000
    again = _fetch(wire, 1, told=[(0, 2, 2)], version=version)
    (partition,) = again.responses[0].partitions
    assert [each.delivery_count for each in partition.acquired_records] == [2], "they were released"
    assert _fetch(wire, 1, version=version).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def share_acknowledge(wire: Wire, version: int) -> None:
    _begin_at_the_start(wire)
    _fetch(wire)
    batch = {"first_offset": 0, "last_offset": 2, "acknowledge_types": [1, 3, 1]}
    request = client_request(
        "ShareAcknowledge",
        version,
        group_id="s",
        member_id=_MEMBER,
        share_session_epoch=1,
        is_renew_ack=False,
        topics=[
            {"topic_id": wire.topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": [batch]}]}
        ],
    )
    answer = wire.exchange(request)
    (partition,) = answer.responses[0].partitions
    assert (answer.error_code, partition.error_code) == (0, 0)
    state = ShareGroups.of(wire.cluster).shares.state("s", wire.topic_id, 0)
    assert state is not None
    assert (state.start_offset, state.delivered) == (0, 3)
    assert wire.exchange(request).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def describe_share_group_offsets(wire: Wire, version: int) -> None:
    share_acknowledge(wire, 2)
    groups = [{"group_id": "s", "topics": None}, {"group_id": "x", "topics": None}]
    known, missing = wire.ask("DescribeShareGroupOffsets", version, groups=groups).groups
    first, second = known.topics[0].partitions
    assert (first.start_offset, first.lag if version else 0, second.start_offset) == (0, 0, -1)
    assert (missing.error_code, missing.topics) == (0, [])


def alter_share_group_offsets(wire: Wire, version: int) -> None:
    _begin_at_the_start(wire)
    rows = [{"partition_index": 0, "start_offset": 1}, {"partition_index": 5, "start_offset": 1}]
    request = client_request(
        "AlterShareGroupOffsets", version, group_id="s", topics=[{"topic_name": "t", "partitions": rows}]
    )
    assert wire.exchange(request).error_code == ErrorCode.NON_EMPTY_GROUP
    _heartbeat(wire, -1)
    answer = wire.exchange(request)
    errors = [each.error_code for each in answer.responses[0].partitions]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    (acquired,) = _fetch(wire).responses[0].partitions[0].acquired_records
    assert (acquired.first_offset, acquired.last_offset) == (1, 2)


def delete_share_group_offsets(wire: Wire, version: int) -> None:
    share_acknowledge(wire, 2)
    request = client_request(
        "DeleteShareGroupOffsets", version, group_id="s", topics=[{"topic_name": "t"}, {"topic_name": "x"}]
    )
    assert wire.exchange(request).error_code == ErrorCode.NON_EMPTY_GROUP
    _heartbeat(wire, -1)
    errors = [each.error_code for each in wire.exchange(request).responses]
    assert errors == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert ShareGroups.of(wire.cluster).shares.state("s", wire.topic_id, 0) is None
