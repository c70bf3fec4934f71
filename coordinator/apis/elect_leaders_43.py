"""ElectLeaders (43, v0 to v2): makes the preferred replicas leaders.

v1 unclean elections (KIP-460), for partitions without a leader; v2 flexible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.replication import NO_NODE
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.handling.access import of_cluster
from loadwise.coordinator.handling.in_time import in_time
from loadwise.coordinator.handling.refusals import refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ElectLeadersRequest, ElectLeadersResponse

_KINDS = 1
_PREFERRED, _UNCLEAN = 0, 1
_Topic = ElectLeadersResponse.ReplicaElectionResult


@in_time
def handle(call: Call[ElectLeadersRequest], cluster: Cluster) -> Turns[ElectLeadersResponse]:
    """Elect in each partition; null means all, and then only changed ones are in the response."""
    asked = call.body.topic_partitions
    kind = call.body.election_type if call.version >= _KINDS else _PREFERRED
    if kind not in (_PREFERRED, _UNCLEAN):
        refusal = yield from refusal_in_turns(call, ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        assert isinstance(refusal, ElectLeadersResponse)
        return refusal
    is_preferred = kind == _PREFERRED
    wanted: Iterable[tuple[str, Sequence[int]]] = (
        ((topic.name, range(len(topic.partitions))) for topic in cluster.topics.in_turns())
        if asked is None
        else ((topic.topic, topic.partitions) for topic in asked)
    )
    results = []
    for name, numbers in wanted:
        rows = yield from listed(_elected(cluster, name, number, is_preferred=is_preferred) for number in numbers)
        if asked is None:
            rows = [row for row in rows if row.error_code != ErrorCode.ELECTION_NOT_NEEDED]
        yield
        results.append(_Topic(topic=name, partition_result=rows))
    return ElectLeadersResponse(error_code=ErrorCode.NONE, replica_election_results=results)


def _elected(cluster: Cluster, name: str, number: int, *, is_preferred: bool) -> _Topic.PartitionResult:
    error, message = ErrorCode.NONE, None
    partition = cluster.topics.partition(name, number)
    if partition is None:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        message = (
            f"No such topic as {name}" if cluster.topics.get(name) is None else f"No such partition as {name}-{number}"
        )
    elif partition.leader != NO_NODE and (not is_preferred or partition.leader == partition.replicas[0]):
        error, message = ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition."
    elif is_preferred and cluster.brokers.stopped_of(partition.replicas[:1]):
        error, message = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available."
    elif len(cluster.brokers.stopped_of(partition.replicas)) == len(partition.replicas):
        error, message = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "Eligible topic partition leaders are not available."
    else:
        leadership.move_leader(cluster, name, number, partition.replicas[0] if is_preferred else None)
    return _Topic.PartitionResult(partition_id=number, error_code=error, error_message=message)


guard = of_cluster(Operation.ALTER)
