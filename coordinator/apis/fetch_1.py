"""Fetch (1, v4 to v18): returns record batches of partitions, and waits if there are too few.

v4 record batches v2, isolation level; v5 log start offset; v7 sessions (KIP-227); v9 leader epoch; v11 rack (KIP-392);
v12 flexible, diverging epoch; v13 topics by id (KIP-516); v15 replica state; v16 current leader (KIP-951); v17, v18 for
replicas.

There are no sessions: session id 0 in the response makes the client name all its partitions each time. A reader of
committed records gets the records before the first open transaction, and the aborted transactions in them (KIP-98).
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from loadwise.coordinator.calls.call import Call, DelayedFetch
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.replication import NO_EPOCH, NO_NODE, ReplicatedPartition
from loadwise.coordinator.handling.access import per_item, topics
from loadwise.coordinator.handling.named_twice import EachOnce
from loadwise.coordinator.handling.new_leaders import current_leader, node_endpoints
from loadwise.coordinator.handling.refusals import refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import FetchRequest, FetchResponse

_Topic = FetchResponse.FetchableTopicResponse
_Partition = _Topic.PartitionData
_MAX_BYTES = 55 * 1024 * 1024
"""Maximum bytes of a response, whatever the client requests (fetch.max.bytes of the broker)."""
_SESSIONS = 7
_ISOLATION_LEVELS = (0, _READ_COMMITTED := 1)
_WITHOUT_SESSION = (0, -1)
"""Session epochs with all partitions: to start a session, and to end it."""
_LEADER_EPOCH = 9
_RACK = 11
_BY_ID = 13
_ONCE = EachOnce(
    "partition", name=lambda call, topic: topic.topic_id if call.version >= _BY_ID else topic.topic, is_linked=True
)
_NEW_LEADERS = 16
_TOLD_THE_LEADER = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class _Wanted(NamedTuple):
    """One partition of a fetch: where to read, or an error."""

    number: int
    offset: int
    max_bytes: int
    error: ErrorCode
    partition: ReplicatedPartition | None
    """None if there is no such partition."""
    preferred_replica: int = NO_NODE
    """The broker to read from instead."""

    @property
    def log(self) -> PartitionLog | None:
        """Return the log to read; None on an error."""
        if self.partition is None or self.error is not ErrorCode.NONE or self.preferred_replica != NO_NODE:
            return None
        return self.partition.log


@_ONCE.before
def handle(call: Call[FetchRequest], cluster: Cluster) -> Turns[FetchResponse | DelayedFetch]:
    """Answer at once if there are enough records or an error; otherwise delay the fetch."""
    body = call.body
    if call.version >= _SESSIONS and body.session_epoch not in _WITHOUT_SESSION:
        return FetchResponse(
            error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
            session_id=0,
            responses=[],
            node_endpoints=[],
        )
    version = cluster.topics.version
    wanted = yield from _resolved(call, cluster)
    if body.isolation_level not in _ISOLATION_LEVELS and any(each.partition for each in chain.from_iterable(wanted)):
        refusal = yield from refusal_in_turns(call, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert isinstance(refusal, FetchResponse)
        return refusal
    missing_bytes = min(body.min_bytes, body.max_bytes, _MAX_BYTES)
    committed_only = body.isolation_level == _READ_COMMITTED
    ends: dict[PartitionLog, int] = {}
    for each in chain.from_iterable(wanted):
        yield
        log = each.log
        if log is None or missing_bytes <= 0:
            missing_bytes = 0
            break
        ends[log] = _end(log, committed_only=committed_only)
        missing_bytes -= log.available_bytes(each.offset, min(missing_bytes, each.max_bytes), ends[log])
    is_changed = version != cluster.topics.version or any(
        _end(log, committed_only=committed_only) != end for log, end in ends.items()
    )  # while others had their turn
    if missing_bytes <= 0 or is_changed or body.max_wait_ms <= 0 or not ends:
        return (yield from _response(call, cluster, wanted))
    return DelayedFetch(
        respond=lambda: _later(call, cluster),
        logs=ends.keys(),
        missing_bytes=missing_bytes,
        max_wait_ms=body.max_wait_ms,
        committed_only=committed_only,
    )


def _later(call: Call[FetchRequest], cluster: Cluster) -> Turns[FetchResponse]:
    """Look up all partitions again, because a topic may be deleted or have another leader by now."""
    wanted = yield from _resolved(call, cluster)
    return (yield from _response(call, cluster, wanted))


def _end(log: PartitionLog, *, committed_only: bool) -> int:
    return log.stable_offset if committed_only else log.high_watermark


def _resolved(call: Call[FetchRequest], cluster: Cluster) -> Turns[list[list[_Wanted]]]:
    wanted = []
    for topic in call.body.topics:
        wanted.append((yield from _resolve(call, cluster, topic)))
        yield
    return wanted


def _resolve(call: Call[FetchRequest], cluster: Cluster, topic: FetchRequest.FetchTopic) -> Turns[list[_Wanted]]:
    by_id = call.version >= _BY_ID
    found = cluster.topics.get_by_id(topic.topic_id) if by_id else cluster.topics.get(topic.topic)
    if found is not None and found.is_internal:
        cluster.offsets_topic.begin()
    partitions = [] if found is None else found.partitions
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if found is None and by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wanted = []
    for each in topic.partitions:
        yield
        partition = partitions[each.partition] if 0 <= each.partition < len(partitions) else None
        preferred = NO_NODE
        if partition is None:
            error = unknown
        else:
            epoch = each.current_leader_epoch if call.version >= _LEADER_EPOCH else NO_EPOCH
            # A client with a rack may read from any replica (KIP-392).
            error = partition.refusal(call.node_id, epoch, leader_only=call.version < _RACK)
            if error is ErrorCode.NONE:
                if call.version >= _RACK:
                    preferred = partition.preferred_replica(cluster.brokers, call.node_id, call.body.rack_id)
                log = partition.log
                if preferred == NO_NODE and not log.start_offset <= each.fetch_offset <= log.end_offset:
                    error = ErrorCode.OFFSET_OUT_OF_RANGE
        wanted.append(_Wanted(each.partition, each.fetch_offset, each.partition_max_bytes, error, partition, preferred))
    return wanted


def _response(call: Call[FetchRequest], cluster: Cluster, wanted: list[list[_Wanted]]) -> Turns[FetchResponse]:
    budget = min(call.body.max_bytes, _MAX_BYTES)
    committed_only = call.body.isolation_level == _READ_COMMITTED
    is_empty = True
    responses = []
    moved: set[int] = set()
    for topic, partitions in zip(call.body.topics, wanted, strict=True):
        rows = []
        for each in partitions:
            yield
            records = b""
            log = each.log
            if log is not None and each.offset < log.end_offset and (budget > 0 or is_empty):
                records = log.read(
                    each.offset,
                    min(each.max_bytes, budget),
                    at_least_one=is_empty,
                    end_offset=_end(log, committed_only=committed_only),
                )
                budget -= len(records)
                is_empty = is_empty and not records
            row = _row(each, records, committed_only=committed_only)
            if each.partition is not None and each.error in _TOLD_THE_LEADER and call.version >= _NEW_LEADERS:
                row.current_leader = current_leader(_Partition.LeaderIdAndEpoch, each.partition)
                moved.add(each.partition.leader)
            rows.append(row)
        if rows:
            responses.append(_Topic(topic=topic.topic, topic_id=topic.topic_id, partitions=rows))
    return FetchResponse(
        error_code=ErrorCode.NONE,
        session_id=0,
        responses=responses,
        node_endpoints=node_endpoints(FetchResponse.NodeEndpoint, cluster, moved),
    )


def _row(each: _Wanted, records: bytes, *, committed_only: bool) -> _Partition:
    log = each.partition.log if each.partition is not None and each.error is ErrorCode.NONE else None
    aborted: list[_Partition.AbortedTransaction] | None = [] if each.partition is None else None
    if log is not None and committed_only:
        aborted = [
            _Partition.AbortedTransaction(producer_id=found.producer_id, first_offset=found.first_offset)
            for found in log.aborted_in(each.offset, len(records))
        ]
    return _Partition(
        partition_index=each.number,
        error_code=each.error,
        high_watermark=-1 if log is None else log.high_watermark,
        last_stable_offset=-1 if log is None else log.stable_offset,
        log_start_offset=-1 if log is None else log.start_offset,
        aborted_transactions=aborted,
        preferred_read_replica=each.preferred_replica,
        records=records,
    )


guard = _ONCE.before(per_item(topics(Operation.READ, "topic", by_id_from=_BY_ID)))
