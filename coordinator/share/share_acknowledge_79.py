"""ShareAcknowledge (79, v1 to v2): acknowledges records of a share group member (KIP-932).

v2 renewed locks (KIP-1222).
"""

from __future__ import annotations

from uuid import UUID

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS
from loadwise.coordinator.handling.new_leaders import current_leader, node_endpoints
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.acknowledging import acknowledge, refused, request_problem, session_key, told
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse

_Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
_Partition = _Topic.PartitionData


def handle(call: Call[ShareAcknowledgeRequest], cluster: Cluster) -> ShareAcknowledgeResponse:
    """Apply each partition's acknowledgements; the end of a session releases the other records."""
    problem = request_problem(call)
    if problem is not None:
        return refused(ShareAcknowledgeResponse, ErrorCode.INVALID_REQUEST, problem)
    key, epoch = session_key(call), call.body.share_session_epoch
    sessions = ShareGroups.of(cluster).shares.sessions
    if epoch == INITIAL_EPOCH:
        error = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    elif epoch == FINAL_EPOCH:
        error = ErrorCode.SHARE_SESSION_NOT_FOUND if sessions.get(key) is None else ErrorCode.NONE
    else:
        error = sessions.go_on(key, epoch)
    if error is not ErrorCode.NONE:
        return refused(ShareAcknowledgeResponse, error, None)
    rows: dict[UUID, list[_Partition]] = {}
    moved = []
    for where, batches in told(call).items():
        refusal = acknowledge(call, cluster, where, batches)
        row = _Partition(
            partition_index=where[1],
            error_code=ErrorCode.NONE if refusal is None else refusal.error,
            error_message=None if refusal is None else refusal.message,
            current_leader=_Partition.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        )
        if refusal is not None and refusal.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            topic = cluster.topics.get_by_id(where[0])
            assert topic is not None
            row.current_leader = current_leader(_Partition.LeaderIdAndEpoch, topic.partitions[where[1]])
            moved.append(topic.partitions[where[1]])
        rows.setdefault(where[0], []).append(row)
    if epoch == FINAL_EPOCH:
        ShareGroups.of(cluster).shares.end_session(key)
    return ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        acquisition_lock_timeout_ms=ShareGroups.of(cluster).limits(key.group_id).record_lock_duration_ms,
        responses=[_Topic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in rows.items()],
        node_endpoints=node_endpoints(ShareAcknowledgeResponse.NodeEndpoint, cluster, {each.leader for each in moved}),
    )


guard = OF_GROUP_MEMBERS
