"""DescribeLogDirs (35, v1 to v5): returns the size of each partition on a broker.

v1 throttled after the response; v2 flexible; v3 error of the whole response; v4 the disk's size; v5 whether it is
cordoned.

There is one log directory without a disk. Its size is the limit of all records.
"""

from __future__ import annotations

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import DescribeLogDirsRequest, DescribeLogDirsResponse

LOG_DIR = "memory"
_Directory = DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = _Directory.DescribeLogDirsTopic


def handle(call: Call[DescribeLogDirsRequest], cluster: Cluster) -> Turns[DescribeLogDirsResponse]:
    """Describe this broker's partitions: all, or the requested ones."""
    asked = call.body.topics
    wanted: set[tuple[str, int]] = set()
    for each in asked or ():
        wanted.update((each.topic, number) for number in each.partitions)
        yield 1 + len(each.partitions)
    topics = []
    for topic in cluster.topics.in_turns():
        rows = yield from listed(
            _Topic.DescribeLogDirsPartition(
                partition_index=number, partition_size=partition.log.size_bytes, offset_lag=0, is_future_key=False
            )
            for number, partition in enumerate(topic.partitions)
            if call.node_id in partition.replicas and (asked is None or (topic.name, number) in wanted)
        )
        yield
        if rows:
            topics.append(_Topic(name=topic.name, partitions=rows))
    limit = cluster.settings.max_kept_bytes
    directory = _Directory(
        error_code=ErrorCode.NONE,
        log_dir=LOG_DIR,
        topics=topics,
        total_bytes=limit,
        usable_bytes=max(limit - cluster.topics.kept_bytes, 0),
    )
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[directory])


guard = of_cluster(Operation.DESCRIBE)
