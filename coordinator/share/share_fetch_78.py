"""ShareFetch (78, v1 to v2): acquires records for a share group member, and acknowledges others (KIP-932).

v2 a hard limit of records (KIP-1206), renewed locks (KIP-1222).

Acknowledgements take effect at once; the response follows with the first acquired records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from loadwise.coordinator.calls.call import Call, Later
from loadwise.coordinator.cluster.replication import ReplicatedPartition
from loadwise.coordinator.handling.access import OF_GROUP_MEMBERS
from loadwise.coordinator.handling.new_leaders import current_leader, node_endpoints
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.share.acknowledgements import AcknowledgeRefusal
from loadwise.coordinator.share.acknowledging import acknowledge, led_here, refused, request_problem, session_key, told
from loadwise.coordinator.share.delayed_fetches import DelayedShareFetch
from loadwise.coordinator.share.delivery import Delivered, available_bytes, deliver
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.coordinator.share.partition import SharePartition, WantedRecords
from loadwise.coordinator.share.service import ShareKey
from loadwise.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, NO_TOPIC, ShareSession, TopicIdPartition
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ShareFetchRequest, ShareFetchResponse

_Topic = ShareFetchResponse.ShareFetchableTopicResponse
_Partition = _Topic.PartitionData
_Leader = _Partition.LeaderIdAndEpoch
_MAX_BYTES = 55 * 1024 * 1024
"""Maximum bytes of a response, whatever the client requests (fetch.max.bytes of the broker)."""
_AT_ONCE = 1000
_RENEW = 2
_RECORD_LIMIT = 1


@dataclass(slots=True)
class _Answers:
    acknowledged: Mapping[TopicIdPartition, AcknowledgeRefusal | None]
    """The results of the acknowledgements."""
    fetched: dict[TopicIdPartition, Delivered | ErrorCode] = field(default_factory=dict)
    """What was acquired, or the error."""


def handle(call: Call[ShareFetchRequest], cluster: Cluster) -> ShareFetchResponse | Later:
    """Answer at once if there are results; otherwise wait for records."""
    body = call.body
    problem = _problem(call)
    if problem is not None:
        return refused(ShareFetchResponse, ErrorCode.INVALID_REQUEST, problem)
    acknowledgements = told(call)
    error = _go_on(call, cluster, has_acknowledgements=bool(acknowledgements))
    if error is not ErrorCode.NONE:
        return refused(ShareFetchResponse, error, None)
    answers = _Answers(
        {where: acknowledge(call, cluster, where, batches) for where, batches in acknowledgements.items()}
    )
    key = session_key(call)
    session = ShareGroups.of(cluster).shares.sessions.get(key)
    assert session is not None, "it was started or found"
    if body.share_session_epoch == FINAL_EPOCH:
        ShareGroups.of(cluster).shares.end_session(key)
        return _response(call, cluster, answers, None)
    if _is_renewal(call):
        return _response(call, cluster, answers, None)
    wanted = _next_partitions(session, body.share_session_epoch)

    def attempt(is_last: bool) -> ShareFetchResponse | None:
        if ShareGroups.of(cluster).shares.sessions.get(key) is not session:
            return _response(call, cluster, answers, None)  # the session has ended, and the records would be lost
        answers.fetched = _fetch(call, cluster, wanted, is_last=is_last)
        return _response(call, cluster, answers, session) if answers.fetched or is_last else None

    response = attempt(body.max_wait_ms <= 0 or not wanted)
    if response is not None:
        return response
    logs = [log for topic_id, number in wanted if (log := _log(cluster, (topic_id, number))) is not None]
    keys = [ShareKey(key.group_id, *where) for where in wanted]
    wait_ms = body.max_wait_ms * len(wanted) // len(session)
    fetch = DelayedShareFetch(attempt, [*logs, *keys], wait_ms)
    ShareGroups.of(cluster).fetches.delay(call, fetch, cluster.now_ms)
    return Later()


def _problem(call: Call[ShareFetchRequest]) -> str | None:
    body = call.body
    problem = request_problem(call)
    if problem is None and _is_renewal(call):
        is_fetching = body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms
        problem = "A request that renews locks fetches nothing." if is_fetching else None
    return problem


def _is_renewal(call: Call[ShareFetchRequest]) -> bool:
    return call.version >= _RENEW and bool(call.body.is_renew_ack)


def _go_on(call: Call[ShareFetchRequest], cluster: Cluster, *, has_acknowledgements: bool) -> ErrorCode:
    """Start or continue a session. Mirrors ``SharePartitionManager.newContext``."""
    body, key, sessions = call.body, session_key(call), ShareGroups.of(cluster).shares.sessions
    named = [(topic.topic_id or NO_TOPIC, [each.partition_index for each in topic.partitions]) for topic in body.topics]
    if body.share_session_epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            return ErrorCode.INVALID_REQUEST
        most = ShareGroups.of(cluster).limits(key.group_id).max_share_sessions
        return sessions.begin(key, call.connection_id, named, most)
    if body.share_session_epoch == FINAL_EPOCH:
        return ErrorCode.NONE if sessions.get(key) is not None else ErrorCode.SHARE_SESSION_NOT_FOUND
    error = sessions.go_on(key, body.share_session_epoch) or sessions.add(key, named)
    session = sessions.get(key)
    if error is ErrorCode.NONE and session is not None:
        for topic in body.forgotten_topics_data:
            session.remove(topic.topic_id or NO_TOPIC, topic.partitions)
    return error


def _next_partitions(session: ShareSession, epoch: int) -> list[TopicIdPartition]:
    """Return the partitions that a request looks at; each request starts elsewhere, so that none is skipped always.

    In a session with more than `_AT_ONCE` partitions, the next request looks at the next ones, and waits for a part of
    its time only.
    """
    number = len(session)
    step = _AT_ONCE if number > _AT_ONCE else 1
    return session.part(epoch * step % max(number, 1), min(number, _AT_ONCE))


def _fetch(
    call: Call[ShareFetchRequest], cluster: Cluster, wanted: Sequence[TopicIdPartition], *, is_last: bool
) -> dict[TopicIdPartition, Delivered | ErrorCode]:
    """Acquire available records; empty if they are too few. ``is_last`` accepts any number."""
    body, key = call.body, session_key(call)
    fetched: dict[TopicIdPartition, Delivered | ErrorCode] = {}
    shares: dict[TopicIdPartition, tuple[SharePartition, ReplicatedPartition]] = {}
    for where in wanted:
        found = led_here(call, cluster, where)
        if isinstance(found, ErrorCode):
            fetched[where] = found
            continue
        share = ShareGroups.of(cluster).shares.partition(ShareKey(key.group_id, *where), found.log, cluster.now_ms)
        if share.has_room:
            shares[where] = (share, found)
    least = max(min(body.min_bytes, body.max_bytes, _MAX_BYTES), 1)
    missing = least - sum(available_bytes(share, found.log, least) for share, found in shares.values())
    if missing > 0 and not fetched and not is_last:
        return {}
    left = body.max_records
    max_bytes = min(body.max_bytes, _MAX_BYTES) // max(len(shares), 1)
    is_empty = True
    for where, (share, found) in shares.items():
        amount = WantedRecords(left, max(body.batch_size, 1), _is_strict(call))
        delivered = deliver(
            share,
            found.log,
            key.member_id,
            amount,
            cluster.now_ms,
            max_bytes=max_bytes,
            at_least_one=is_empty,
        )
        if delivered.acquired:
            ShareGroups.of(cluster).shares.acquired(ShareKey(key.group_id, *where), key)
        left -= delivered.number
        is_empty = is_empty and not delivered.records
        fetched[where] = delivered
    return fetched if is_last or not is_empty or any(isinstance(each, ErrorCode) for each in fetched.values()) else {}


def _is_strict(call: Call[ShareFetchRequest]) -> bool:
    return call.version >= _RENEW and call.body.share_acquire_mode == _RECORD_LIMIT


def _log(cluster: Cluster, where: TopicIdPartition) -> object | None:
    topic = cluster.topics.get_by_id(where[0])
    return None if topic is None or not 0 <= where[1] < len(topic.partitions) else topic.partitions[where[1]].log


def _response(
    call: Call[ShareFetchRequest], cluster: Cluster, answers: _Answers, session: ShareSession | None
) -> ShareFetchResponse:
    topics: dict[UUID, list[_Partition]] = {}
    moved = []
    for where in dict.fromkeys([*answers.fetched, *answers.acknowledged]):
        outcome = answers.fetched.get(where, Delivered())
        refusal = answers.acknowledged.get(where)
        delivered, error = (outcome, ErrorCode.NONE) if isinstance(outcome, Delivered) else (Delivered(), outcome)
        is_told = where in answers.acknowledged or error is not ErrorCode.NONE or bool(delivered.acquired)
        if session is not None:
            is_first = call.body.share_session_epoch == INITIAL_EPOCH
            is_told = session.answered(where, is_error=error is not ErrorCode.NONE) or is_first or is_told
        if not is_told:
            continue
        leader = _Leader(leader_id=0, leader_epoch=0)
        if ErrorCode.NOT_LEADER_OR_FOLLOWER in (error, refusal.error if refusal is not None else None):
            topic = cluster.topics.get_by_id(where[0])
            assert topic is not None, "it has a leader"
            moved.append(topic.partitions[where[1]])
            leader = current_leader(_Leader, moved[-1])
        row = _Partition(
            partition_index=where[1],
            error_code=error,
            error_message=None if error is ErrorCode.NONE else error.name,
            acknowledge_error_code=ErrorCode.NONE if refusal is None else refusal.error,
            acknowledge_error_message=None if refusal is None else refusal.message,
            current_leader=leader,
            records=delivered.records,
            acquired_records=[
                _Partition.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in delivered.acquired
            ],
        )
        topics.setdefault(where[0], []).append(row)
    return ShareFetchResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        acquisition_lock_timeout_ms=ShareGroups.of(cluster).limits(session_key(call).group_id).record_lock_duration_ms,
        responses=[_Topic(topic_id=topic_id, partitions=rows) for topic_id, rows in topics.items()],
        node_endpoints=node_endpoints(ShareFetchResponse.NodeEndpoint, cluster, {each.leader for each in moved}),
    )


guard = OF_GROUP_MEMBERS
