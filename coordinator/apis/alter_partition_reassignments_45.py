"""AlterPartitionReassignments (45, v0 to v1): moves partitions to other brokers (KIP-455).

v1 may forbid a change of the replica count. All replicas are one log here, so a reassignment completes at once, and
there is none to cancel.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.handling.in_time import in_time
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse

_MAY_FORBID = 1
_Asked = AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition
_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


@in_time
def handle(
    call: Call[AlterPartitionReassignmentsRequest], cluster: Cluster
) -> Turns[AlterPartitionReassignmentsResponse]:
    """Reassign each partition separately."""
    responses = []
    for topic in call.body.topics:
        rows = []
        for each in topic.partitions:
            error, message = _reassigned(call, cluster, topic.name, each)
            rows.append(
                _Topic.ReassignablePartitionResponse(
                    partition_index=each.partition_index, error_code=error, error_message=message
                )
            )
            yield
        yield
        responses.append(_Topic(name=topic.name, partitions=rows))
    fixed = call.version >= _MAY_FORBID
    return AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=responses,
        **({"allow_replication_factor_change": call.body.allow_replication_factor_change} if fixed else {}),
    )


def _reassigned(
    call: Call[AlterPartitionReassignmentsRequest], cluster: Cluster, name: str, asked: _Asked
) -> tuple[ErrorCode, str | None]:
    partition = cluster.topics.partition(name, asked.partition_index)
    if partition is None:
        missing = f"there is no partition {asked.partition_index} of a topic {name!r}"
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, missing
    if asked.replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
    problem = cluster.brokers.misplaced([asked.replicas], is_new=False)
    if problem is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem
    may_change = call.version < _MAY_FORBID or call.body.allow_replication_factor_change
    if not may_change and len(asked.replicas) != len(partition.replicas):
        message = f"{len(asked.replicas)} replicas; the partition has {len(partition.replicas)}, and it may not change"
        return ErrorCode.INVALID_REPLICATION_FACTOR, message
    leadership.reassign(cluster, partition, asked.replicas)
    return ErrorCode.NONE, None


guard = of_cluster(Operation.ALTER)
