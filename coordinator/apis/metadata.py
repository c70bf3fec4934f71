"""Metadata (3): brokers, topics, partitions and their leaders.

v0 empty list: all topics; v1 null: all topics, rack; v2 cluster id; v3 throttle time; v4 may forbid to make topics;
v5 offline replicas; v7 leader epoch; v8 authorized operations; v9 flexible; v10 topic ids (KIP-516); v12 topics by id;
v13 error of the whole response.

Encoding thousands of partitions takes milliseconds (kafka-python: 4.7 µs each), and clients ask often: encoded bodies
are kept until a topic comes, grows or goes, or a leader moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from loadwise.coordinator.calls import Call, EncodedBody, Message, Service
from loadwise.coordinator.cluster.topics import MAX_NEW_PARTITIONS, Topic, is_topic_name
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api, encode_body
from loadwise.protocol.structs import struct_class

_MAX_KEPT = 64
_MAX_KEPT_BYTES = 16 * 1024 * 1024
_Topic = struct_class(MetadataResponse.MetadataResponseTopic)


def handle(call: Call, cluster: Cluster) -> EncodedBody:
    """Answer from what is kept, or encode and keep."""
    body = call.body
    wanted = None
    if body.topics is not None and not (call.version == 0 and not body.topics):
        # Java writes an empty name beside an id.
        names = ((None if topic.topic_id else topic.name, topic.topic_id) for topic in body.topics)
        wanted = tuple(dict.fromkeys(names))  # once each, as in Kafka
        if cluster.settings.auto_create_topics and (call.version < 4 or body.allow_auto_topic_creation):
            _create_missing(cluster, [name for name, _ in wanted if name is not None])
    key = (call.version, wanted, cluster.topics.version)
    encoded = cluster.encoded.get(key)
    if encoded is None:
        response = _response(call, cluster, wanted)
        flexible = MetadataResponse.flexible_version_q(call.version)
        encoded = EncodedBody(encode_body(response), flexible)
        kept_bytes = sum(len(each.data) for each in cluster.encoded.values())
        if len(cluster.encoded) >= _MAX_KEPT or kept_bytes + len(encoded.data) > _MAX_KEPT_BYTES:
            cluster.encoded.clear()
        cluster.encoded[key] = encoded
    return encoded


def _create_missing(cluster: Cluster, names: Iterable[str]) -> None:
    """Make topics, as many as one request may.

    The others are UNKNOWN_TOPIC_OR_PARTITION, which Kafka answers for all while it makes them: clients ask again.
    """
    partitions = cluster.settings.default_partitions
    left = MAX_NEW_PARTITIONS
    for name in names:
        if cluster.topics.get(name) is None and cluster.topics.refusal(name, partitions) is None:
            if partitions > left:
                return
            left -= partitions
            cluster.topics.create(name, partitions)


def _response(call: Call, cluster: Cluster, wanted: tuple[tuple[str | None, UUID | None], ...] | None) -> Message:
    if wanted is None:
        topics = [_described(topic) for topic in cluster.topics]
    else:
        topics = [_looked_up(cluster, name, topic_id) for name, topic_id in wanted]
    row = MetadataResponse.MetadataResponseBroker
    return call.response(
        throttle_time_ms=0,
        brokers=[
            row(node_id=node.id, host=node.host, port=node.port, rack=node.rack) for node in cluster.brokers.nodes
        ],
        cluster_id=cluster.cluster_id,
        controller_id=cluster.brokers.controller.id,
        topics=topics,
        authorized_operations=None,
        error_code=ErrorCode.NONE,
    )


def _looked_up(cluster: Cluster, name: str | None, topic_id: UUID | None) -> Message:
    if name is None:
        topic = cluster.topics.get_by_id(topic_id)
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = cluster.topics.get(name)
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic is not None:
        return _described(topic)
    return _Topic(
        error_code=missing, name=name, topic_id=topic_id, is_internal=False, partitions=[], authorized_operations=None
    )


def _described(topic: Topic) -> Message:
    partitions = [
        _Topic.MetadataResponsePartition(
            error_code=ErrorCode.NONE,
            partition_index=index,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=partition.replicas,
            isr_nodes=partition.replicas,
            offline_replicas=[],
        )
        for index, partition in enumerate(topic.partitions)
    ]
    return _Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=False,
        partitions=partitions,
        authorized_operations=None,
    )


SERVICE = Service(Api.of(MetadataRequest, MetadataResponse), handle)
