"""Metadata (3, v0 to v13): brokers, topics, partitions and their leaders.

v0 empty list: all topics; v1 null: all topics, rack; v2 cluster id; v3 throttle time; v4 may forbid topic creation; v5
offline replicas; v7 leader epoch; v8 authorized operations; v9 flexible; v10 topic ids (KIP-516); v12 topics by id; v13
error of the whole response.

Encoding thousands of partitions takes milliseconds (kafka-python: 4.7 µs each), and clients ask often. So encoded
bodies are cached until a topic or leader changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias
from uuid import UUID
from weakref import WeakKeyDictionary

from loadwise.coordinator.calls.call import Call, EncodedBody
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, Brokers
from loadwise.coordinator.cluster.replication import NO_NODE
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS, Topic, Topics, is_topic_name
from loadwise.coordinator.handling.access import Access, cluster_operations, with_body
from loadwise.coordinator.handling.refusals import refusal_in_turns
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import MetadataRequest, MetadataResponse
from loadwise.protocol.messages import body_in_turns

_OPERATIONS = 8
_CLUSTER_OPERATIONS = range(8, 11)
_HAS_IDS = 10
_BY_ID = 12
_MAX_NAMES = 1000
"""Responses to requests with more names are not cached, since the names are a part of the key."""
_MAX_KEPT = 64
_MAX_KEPT_BYTES = 16 * 1024 * 1024
_Topic = MetadataResponse.MetadataResponseTopic
_ENCODED: WeakKeyDictionary[Topics, dict[object, EncodedBody]] = WeakKeyDictionary()
"""The encoded bodies of each cluster's topics, by what they depend on."""


Wanted: TypeAlias = "tuple[tuple[str | None, UUID | None], ...] | None"
"""Names and ids of topics; None: all of them."""


def handle(call: Call[MetadataRequest], cluster: Cluster) -> Turns[EncodedBody | MetadataResponse]:
    """Answer from the cache, or encode and cache; what names too many topics is not cached."""
    refusal = yield from _refusal(call)
    if refusal is not None:
        return refusal
    wanted = yield from _wanted(call)
    if wanted is not None and _may_create(call, cluster):
        yield from _create_missing(cluster, [name for name, _ in wanted if name is not None])
    if wanted is not None and len(wanted) > _MAX_NAMES:
        return (yield from _response(call, cluster, wanted))
    key = (call.version, wanted, cluster.topics.version, *_tells_operations(call))
    encoded_bodies = _ENCODED.setdefault(cluster.topics, {})
    encoded = encoded_bodies.get(key)
    if encoded is None:
        version = cluster.topics.version
        response = yield from _response(call, cluster, wanted)
        pieces = yield from body_in_turns(response, call.version)
        encoded = EncodedBody(pieces, flexible=call.version in MetadataResponse.schema.flexible)
        if version == cluster.topics.version:  # nothing has changed meanwhile
            kept_bytes = sum(each.size_bytes for each in encoded_bodies.values())
            if len(encoded_bodies) >= _MAX_KEPT or kept_bytes + encoded.size_bytes > _MAX_KEPT_BYTES:
                encoded_bodies.clear()
            encoded_bodies[key] = encoded
    return encoded


def _wanted(call: Call[MetadataRequest]) -> Turns[Wanted]:
    topics = call.body.topics
    if topics is None or (call.version == 0 and not topics):
        return None
    # Java writes an empty name beside an id. As in Kafka, names do not count beside ids.
    ids: dict[tuple[None, UUID], None] = {}
    names: dict[tuple[str | None, None], None] = {}
    for topic in topics:
        if topic.topic_id:
            ids[None, topic.topic_id] = None
        else:
            names[topic.name, None] = None
        yield
    return tuple(ids or names)


def _refusal(call: Call[MetadataRequest]) -> Turns[MetadataResponse | None]:
    """Return the error for topics without a name: by id in versions that do not use it yet, or without an id too."""
    topics = call.body.topics or ()
    has_ids = has_nameless = False
    for topic in topics if call.version >= _HAS_IDS else ():
        has_ids |= bool(topic.topic_id)
        has_nameless |= topic.name is None
        yield
    is_early = call.version < _BY_ID
    if not ((has_ids or has_nameless) if is_early else (has_nameless and not has_ids)):
        return None
    row = MetadataRequest.MetadataRequestTopic
    named = yield from listed(row(name=topic.name or "", topic_id=topic.topic_id) for topic in topics)
    error = ErrorCode.INVALID_REQUEST if is_early else ErrorCode.UNKNOWN_SERVER_ERROR
    message = "Topics are requested by id from version 12 on." if is_early else None
    refusal = yield from refusal_in_turns(with_body(call, {"topics": named}), error, message)
    assert isinstance(refusal, MetadataResponse)
    return refusal


def _may_create(call: Call[MetadataRequest], cluster: Cluster) -> bool:
    return cluster.settings.auto_create_topics and (call.version < 4 or call.body.allow_auto_topic_creation)


def _tells_operations(call: Call[MetadataRequest]) -> tuple[bool, bool]:
    """Return whether the response contains the client's rights on topics, and on the cluster."""
    body = call.body
    return (
        call.version >= _OPERATIONS and body.include_topic_authorized_operations,
        call.version in _CLUSTER_OPERATIONS and body.include_cluster_authorized_operations,
    )


def _create_missing(cluster: Cluster, names: Iterable[str]) -> Turns[None]:
    """Create missing topics, up to the limit of a request.

    The others get UNKNOWN_TOPIC_OR_PARTITION, so that clients retry. Kafka returns it for all while it creates them.
    """
    partitions = cluster.settings.default_partitions
    left = MAX_NEW_PARTITIONS
    for name in names:
        yield
        if name == CONSUMER_OFFSETS:
            cluster.offsets_topic.make()
        elif cluster.topics.get(name) is None and cluster.topics.refusal(name, partitions) is None:
            if partitions > left:
                return
            left -= partitions
            cluster.topics.create(name, partitions)
            yield partitions


def _response(
    call: Call[MetadataRequest], cluster: Cluster, wanted: Wanted, seen_by: Access | None = None
) -> Turns[MetadataResponse]:
    of_topics, of_cluster = _tells_operations(call)
    access = Access(call, cluster)
    topics = []
    if wanted is None:
        for topic in cluster.topics.in_turns():
            if seen_by is None or _may_see(seen_by, topic.name):
                topics.append((yield from _described(topic, cluster.brokers)))
            yield
    else:
        for name, topic_id in wanted:
            topics.append((yield from _looked_up(cluster, name, topic_id)))
    if of_topics:
        for found in topics:
            if found.name is not None:
                found.topic_authorized_operations = access.operations(ResourceType.TOPIC, found.name)
            yield
    row = MetadataResponse.MetadataResponseBroker
    return MetadataResponse(
        brokers=[
            row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in cluster.brokers.running
        ],
        cluster_id=cluster.brokers.cluster_id,
        controller_id=cluster.brokers.controller.id,
        topics=topics,
        cluster_authorized_operations=cluster_operations(access) if of_cluster else None,
        error_code=ErrorCode.NONE,
    )


def _looked_up(cluster: Cluster, name: str | None, topic_id: UUID | None) -> Turns[_Topic]:
    if name is None:
        topic = cluster.topics.get_by_id(topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = cluster.topics.get(name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic is not None:
        return (yield from _described(topic, cluster.brokers))
    yield
    return _refused(missing, name, topic_id)


def _refused(error: ErrorCode, name: str | None, topic_id: UUID | None) -> _Topic:
    return _Topic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=False,
        partitions=[],
        topic_authorized_operations=None,
    )


def _described(topic: Topic, brokers: Brokers) -> Turns[_Topic]:
    partitions = yield from listed(
        _Topic.MetadataResponsePartition(
            error_code=ErrorCode.NONE if partition.leader != NO_NODE else ErrorCode.LEADER_NOT_AVAILABLE,
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.isr,
            offline_replicas=brokers.stopped_of(partition.replicas),
        )
        for index, partition in enumerate(topic.partitions)
    )
    return _Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=None,
    )


def guard(call: Call[MetadataRequest], cluster: Cluster, _: Handler) -> Turns[MetadataResponse]:
    """Answer without the cache, because each client may see other topics.

    Topics that a client may not describe are omitted if it asks for all. If it names one, it gets an error whether or
    not the topic exists. Topics are created if the client may create them.
    """
    access = Access(call, cluster)
    refusal = yield from _refusal(call)
    if refusal is not None:
        return refusal
    wanted = yield from _wanted(call)
    if wanted is None:
        return (yield from _response(call, cluster, None, access))
    allowed: list[tuple[str | None, UUID | None]] = []
    refused: list[tuple[str | None, UUID | None]] = []
    missing: list[str] = []
    for name, topic_id in wanted:
        topic = cluster.topics.get_by_id(topic_id) if name is None else cluster.topics.get(name)
        found = name if topic is None else topic.name
        if found is not None and not _may_see(access, found):
            refused.append((name, topic_id))
        elif topic is None and name is not None and _may_create(call, cluster):
            may = access.may(Operation.CREATE, ResourceType.CLUSTER) or access.may(
                Operation.CREATE, ResourceType.TOPIC, name
            )
            (allowed if may else refused).append((name, topic_id))
            missing += [name] if may else []
        else:
            allowed.append((name, topic_id))
        yield
    yield from _create_missing(cluster, missing)
    response = yield from _response(call, cluster, tuple(allowed))
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    rows = yield from listed(_refused(error, name, topic_id) for name, topic_id in refused)
    response.topics = [*response.topics, *rows]
    return response


def _may_see(access: Access, name: str) -> bool:
    return access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
