"""DescribeQuorum (55, v0 to v2): describes the quorum of the cluster's metadata (KIP-595).

v1 timestamps (KIP-836); v2 directories and addresses (KIP-853). The controller is the only voter. The metadata have no
log here, so its end is the number of changes of the topics.
"""

from __future__ import annotations

from itertools import islice

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.brokers import CLUSTER_METADATA
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeQuorumRequest, DescribeQuorumResponse

_Topic = DescribeQuorumResponse.TopicData
_Partition = _Topic.PartitionData


def handle(call: Call[DescribeQuorumRequest], cluster: Cluster) -> Turns[DescribeQuorumResponse]:
    """Describe the only partition if the request names no other; else return an error for each."""
    named = ((topic.topic_name, each.partition_index) for topic in call.body.topics for each in topic.partitions)
    is_valid = list(islice(named, 2)) == [(CLUSTER_METADATA, 0)]
    topics = []
    for topic in call.body.topics:
        rows = yield from listed(
            _described(cluster, each.partition_index, is_valid=is_valid) for each in topic.partitions
        )
        topics.append(_Topic(topic_name=topic.topic_name, partitions=rows))
        yield
    controller = cluster.brokers.controller
    node = DescribeQuorumResponse.Node
    listener = node.Listener(name="CONTROLLER", host=controller.host, port=controller.port)
    nodes = [node(node_id=controller.id, listeners=[listener])] if is_valid else []
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, error_message="", topics=topics, nodes=nodes)


def _described(cluster: Cluster, number: int, *, is_valid: bool) -> _Partition:
    if not is_valid:
        return _Partition(
            partition_index=number,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="there is only partition 0 of __cluster_metadata",
            current_voters=[],
            observers=[],
        )
    end_offset = cluster.topics.version
    return _Partition(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message="",
        leader_id=cluster.brokers.controller.id,
        leader_epoch=1,
        high_watermark=end_offset,
        current_voters=[
            _Partition.ReplicaState(
                replica_id=cluster.brokers.controller.id,
                replica_directory_id=None,
                log_end_offset=end_offset,
                last_fetch_timestamp=cluster.now_ms,
                last_caught_up_timestamp=cluster.now_ms,
            )
        ],
        observers=[],
    )


guard = of_cluster(Operation.DESCRIBE)
