"""AlterReplicaLogDirs (34, v1 to v2): moves partitions to another log directory of a broker. v2 flexible.

There is only one log directory, so they stay. Mirrors ``ReplicaManager.alterReplicaLogDirs``.
"""

from __future__ import annotations

from loadwise.coordinator.access import of_cluster
from loadwise.coordinator.apis.describe_log_dirs_35 import LOG_DIR
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterReplicaLogDirsResponse

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult


def handle(call: Call, cluster: Cluster) -> Message:
    """Answer each partition separately; if one is named twice, its last directory counts."""
    paths = {
        (topic.name, partition): directory.path
        for directory in call.body.dirs
        for topic in directory.topics
        for partition in topic.partitions
    }
    rows: dict[str, list[Message]] = {}
    for (name, partition), path in paths.items():
        error = _error(call, cluster, name, partition, path)
        row = _Topic.AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=error)
        rows.setdefault(name, []).append(row)
    results = [_Topic(topic_name=name, partitions=partitions) for name, partitions in rows.items()]
    return call.response(throttle_time_ms=0, results=results)


def _error(call: Call, cluster: Cluster, name: str, partition: int, path: str) -> ErrorCode:
    if path != LOG_DIR:
        return ErrorCode.LOG_DIR_NOT_FOUND
    topic = cluster.topics.get(name)
    if topic is None or not 0 <= partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    held = call.node_id in topic.partitions[partition].replicas
    return ErrorCode.NONE if held else ErrorCode.REPLICA_NOT_AVAILABLE


guard = of_cluster(Operation.ALTER)
