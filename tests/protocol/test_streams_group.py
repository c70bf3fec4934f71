"""The messages of streams groups: ours read what kafka-python's generic classes write, and the other way round."""

from __future__ import annotations

from typing import Any

from client_messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

from loadwise.protocol import kafka_messages as ours
from loadwise.protocol.messages import Api, decode_request, encode_response, served

HEARTBEAT = Api.of("StreamsGroupHeartbeat")
DESCRIBE = Api.of("StreamsGroupDescribe")
APIS = served([HEARTBEAT, DESCRIBE])


def read(request: Any) -> Any:
    request.with_header(7, "c")
    return decode_request(bytes(request.encode(header=True)), APIS).body


def test_the_keys_and_versions_are_kafkas() -> None:
    assert [(api.key, api.min_version, api.max_version) for api in (HEARTBEAT, DESCRIBE)] == [(88, 0, 0), (89, 0, 0)]


def test_a_first_heartbeat_is_read_with_its_topology() -> None:
    row = StreamsGroupHeartbeatRequest
    subtopology_row = row.Topology.Subtopology
    changelog = subtopology_row.TopicInfo(
        name="app-counts-changelog",
        partitions=0,
        replication_factor=0,
        topic_configs=[subtopology_row.TopicInfo.KeyValue(key="cleanup.policy", value="compact")],
    )
    subtopology = subtopology_row(
        subtopology_id="0",
        source_topics=["in"],
        source_topic_regex=["other.*"],
        state_changelog_topics=[changelog],
        repartition_sink_topics=["app-by-key-repartition"],
        repartition_source_topics=[],
        copartition_groups=[
            subtopology_row.CopartitionGroup(source_topics=[0], source_topic_regex=[0], repartition_source_topics=[])
        ],
    )
    body = read(
        row(
            version=0,
            group_id="app",
            member_id="m",
            member_epoch=0,
            endpoint_information_epoch=-1,
            rebalance_timeout_ms=45_000,
            topology=row.Topology(epoch=3, subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=None,
            warmup_tasks=[],
            process_id="p",
            user_endpoint=row.Endpoint(host="h", port=65_000),
            client_tags=[row.KeyValue(key="zone", value="a")],
            task_offsets=[row.TaskOffset(subtopology_id="0", partition=1, offset=9)],
        )
    )
    assert (body.group_id, body.member_id, body.rebalance_timeout_ms, body.instance_id) == ("app", "m", 45_000, None)
    assert body.topology.epoch == 3
    (found,) = body.topology.subtopologies
    assert (found.subtopology_id, found.source_topics, found.source_topic_regex) == ("0", ["in"], ["other.*"])
    assert found.state_changelog_topics[0].topic_configs[0].value == "compact"
    assert found.copartition_groups[0].source_topics == [0]
    assert (body.active_tasks, body.standby_tasks, body.warmup_tasks) == ([], None, [])
    assert (body.user_endpoint.host, body.user_endpoint.port) == ("h", 65_000)
    assert (body.client_tags[0].key, body.task_offsets[0].offset, body.task_end_offsets) == ("zone", 9, None)
    assert body.shutdown_application is False


def test_an_answer_reads_as_a_client_reads_it() -> None:
    light = ours.StreamsGroupHeartbeatResponse
    endpoints = light.EndpointToPartitions(
        user_endpoint=light.EndpointToPartitions.Endpoint(host="h", port=65_000),
        active_partitions=[light.EndpointToPartitions.TopicPartition(topic="in", partitions=[0, 1])],
        standby_partitions=[],
    )
    answer = light(
        error_code=0,
        member_id="m",
        member_epoch=2,
        heartbeat_interval_ms=5_000,
        acceptable_recovery_lag=10_000,
        task_offset_interval_ms=60_000,
        status=[light.Status(status_code=1, status_detail="in is missing")],
        active_tasks=[light.TaskIds(subtopology_id="0", partitions=[1])],
        standby_tasks=[],
        warmup_tasks=None,
        endpoint_information_epoch=4,
        partitions_by_user_endpoint=[endpoints],
    )
    found = StreamsGroupHeartbeatResponse.decode(bytes(encode_response(answer, 0, 7))[4:], version=0, header=True)
    assert (found.member_epoch, found.acceptable_recovery_lag, found.endpoint_information_epoch) == (2, 10_000, 4)
    assert [(each.status_code, each.status_detail) for each in found.status] == [(1, "in is missing")]
    assert [(each.subtopology_id, each.partitions) for each in found.active_tasks] == [("0", [1])]
    assert (found.standby_tasks, found.warmup_tasks) == ([], None)
    assert found.partitions_by_user_endpoint[0].user_endpoint.port == 65_000


def test_groups_are_asked_for_and_described() -> None:
    body = read(StreamsGroupDescribeRequest(version=0, group_ids=["app"], include_authorized_operations=True))
    assert (body.group_ids, body.include_authorized_operations) == (["app"], True)
    light = ours.StreamsGroupDescribeResponse
    group = light.DescribedGroup(
        error_code=69,
        error_message="Group app not found.",
        group_id="app",
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        topology=None,
        members=[],
        authorized_operations={3},
    )
    whole = bytes(encode_response(light(groups=[group]), 0, 7))
    (found,) = StreamsGroupDescribeResponse.decode(whole[4:], version=0, header=True).groups
    assert (found.error_code, found.topology, found.members, found.authorized_operations) == (69, None, [], {3})
