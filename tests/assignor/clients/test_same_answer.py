"""The same group gets the same answer, to the byte, whichever client leads it.

Both clients' own leader code runs here, around our assignors, on the same JoinGroup response and the same metadata.
"""

import asyncio
import struct
from dataclasses import replace
from types import SimpleNamespace

import pytest
from aiokafka.cluster import ClusterMetadata as AiokafkaMetadata
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.protocol.metadata import MetadataResponse_v5
from group_strategies import Group, groups
from hypothesis import given
from hypothesis import strategies as st
from kafka.cluster import ClusterMetadata as KafkaPythonMetadata
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.protocol.metadata import MetadataResponse

from loadwise.assignor.clients.aiokafka import consumer as aiokafka
from loadwise.assignor.clients.aiokafka import internals as aiokafka_internals
from loadwise.assignor.clients.kafka_python import consumer as kafka_python
from loadwise.assignor.clients.kafka_python.internals import KafkaPythonCoordinator
from loadwise.assignor.clients.plug import ClientMetadata
from loadwise.assignor.load.source import FixedLoad
from loadwise.assignor.participant import Participant
from loadwise.assignor.strategy import strategies, strategy
from loadwise.assignor.subscription import write_subscription
from loadwise.protocol.consumer import Assignment, Subscription

NODES = {"r0": 1, "r1": 2, "r2": 3, None: 4}
EAGER = sorted(name for name, used in strategies().items() if not used.cooperative)


def metadata(partitions, racks):
    """A MetadataResponse v5 as both clients hold it; a broker a rack, and one without."""
    topic_type = MetadataResponse.MetadataResponseTopic
    broker_type = MetadataResponse.MetadataResponseBroker
    data = bytes(
        MetadataResponse(
            version=5,
            cluster_id="c",
            controller_id=1,
            brokers=[broker_type(node_id=node, host="h", port=1, rack=rack) for rack, node in NODES.items()],
            topics=[
                topic_type(
                    name=topic,
                    partitions=[
                        topic_type.MetadataResponsePartition(
                            partition_index=number,
                            leader_id=4,
                            replica_nodes=[NODES[rack] for rack in racks[topic][number]] if racks else [4],
                        )
                        for number in range(count)
                    ],
                )
                for topic, count in partitions.items()
            ],
        ).encode()
    )
    theirs, aiokafkas = KafkaPythonMetadata(), AiokafkaMetadata()
    theirs.update_metadata(MetadataResponse.decode(data, version=5))
    aiokafkas.update_metadata(MetadataResponse_v5.decode(data))
    return theirs, aiokafkas


def led_by_kafka_python(plug, cluster, members, *, follow):
    topics = set()
    coordinator = object.__new__(KafkaPythonCoordinator if follow else ConsumerCoordinator)
    coordinator.config = {"group_id": "g"}
    coordinator._assignors = {plug.name: plug}
    coordinator._subscription = SimpleNamespace(group_subscribe=topics.update, group_subscription=lambda: topics)
    coordinator._cluster = cluster
    coordinator._metadata_snapshot = {}
    coordinator._listed = (None, [])
    listed = [SimpleNamespace(member_id=i, group_instance_id=instance, metadata=data) for i, instance, data in members]
    return coordinator._perform_assignment("leader", plug.name, listed)


def led_by_aiokafka(plug, cluster, members, *, follow):
    async def ready(*_):
        pass

    coordinator = object.__new__(aiokafka_internals.AiokafkaCoordinator if follow else GroupCoordinator)
    coordinator.group_id = "g"
    coordinator.generation = 1
    coordinator._assignors = coordinator.plugs = [plug]
    coordinator.before_assignment = ready
    coordinator._subscription = SimpleNamespace(subscribed_pattern=None)
    coordinator._client = SimpleNamespace(set_topics=set, _maybe_wait_metadata=ready)
    coordinator._cluster = cluster
    coordinator._get_metadata_snapshot = dict
    response = SimpleNamespace(API_VERSION=5, group_protocol=plug.name, members=members)
    return asyncio.run(coordinator._perform_assignment(response))


def legal(group):
    """The same group with topic names that Kafka allows: kafka-python raises in front of our assignor over others."""
    names = str.maketrans({"\uff5e": "d", "\U0001f600": "e"})

    def renamed(by_topic):
        return None if by_topic is None else {topic.translate(names): value for topic, value in by_topic.items()}

    return Group(
        tuple(
            replace(m, topics=[topic.translate(names) for topic in m.topics], owned=renamed(m.owned))
            for m in group.members
        ),
        renamed(group.partitions),
        renamed(group.load),
        renamed(group.racks),
    )


def listed(name, group):
    """The group's members as JoinGroup lists them."""
    return [
        (
            member.id,
            member.instance_id,
            write_subscription(
                strategy(name),
                member.topics,
                owned={topic: [n for n in numbers if n >= 0] for topic, numbers in member.owned.items()},
                generation=member.generation,
                capacity=member.capacity,
                rack=member.rack,
            ).encode(),
        )
        for member in group.members
    ]


@given(groups(), st.sampled_from(EAGER), st.lists(st.binary(max_size=20), max_size=2))
def test_every_client_s_leader_answers_the_same_bytes(group, name, strangers):
    members = listed(name, group) + [(f"stranger{i}", None, data) for i, data in enumerate(strangers)]
    kafka_python_metadata, aiokafka_metadata = metadata(group.partitions, group.racks)
    load = None if group.load is None else FixedLoad(load=group.load)

    first = led_by_kafka_python(
        kafka_python.KafkaPythonAssignor(Participant(name, load=load)), kafka_python_metadata, members, follow=True
    )
    second = led_by_aiokafka(
        aiokafka.AiokafkaAssignor(Participant(name, load=load)), aiokafka_metadata, members, follow=True
    )
    assert first == second
    assert sorted(first) == sorted(id_ for id_, _, _ in members)


@given(groups().map(legal), st.sampled_from(EAGER))
def test_the_explicit_forms_answer_alike_where_the_client_tells_them_all(group, name):
    """aiokafka tells an assignor neither instance ids nor racks: so here there are none."""
    members = [
        (id_, None, Subscription(topics=said.topics, user_data=said.user_data).encode())
        for id_, _, data in listed(name, group)
        for said in [Subscription.decode(data)]
    ]
    kafka_python_metadata, aiokafka_metadata = metadata(group.partitions, None)
    load = None if group.load is None else FixedLoad(load=group.load)
    first = led_by_kafka_python(kafka_python.assignor(name, load=load), kafka_python_metadata, members, follow=False)
    second = led_by_aiokafka(aiokafka.assignor(name, load=load), aiokafka_metadata, members, follow=False)
    assert first == second


@given(groups().map(legal), st.sampled_from(sorted(strategies())), st.booleans())
def test_kafka_python_s_explicit_form_sees_what_its_factory_sees(group, name, with_user_data):
    members = listed(name, group)
    if not with_user_data:  # as some clients join a cooperative group: all is in the subscription
        members = [
            (id_, instance_id, replace(Subscription.decode(data), user_data=None).encode())
            for id_, instance_id, data in members
        ]
    cluster, _ = metadata(group.partitions, group.racks)
    plain = led_by_kafka_python(kafka_python.assignor(name), cluster, members, follow=False)
    followed = led_by_kafka_python(kafka_python.assignor(name), cluster, members, follow=True)
    assert plain == followed


@pytest.mark.parametrize("lead", [led_by_kafka_python, led_by_aiokafka])
def test_a_member_that_cannot_be_read_gets_nothing_and_stops_nobody(lead, caplog):
    plug = (kafka_python if lead is led_by_kafka_python else aiokafka).assignor("range")
    cluster = metadata({"t": 3}, None)[0 if lead is led_by_kafka_python else 1]
    members = [("good", None, Subscription(topics=["t"]).encode()), ("bad", None, b"\0\1nonsense")]
    with pytest.raises((ValueError, struct.error)):
        lead(plug, cluster, members, follow=False)  # the client itself gives up before it asks the assignor
    answer = lead(plug, cluster, members, follow=True)
    assert Assignment.decode(answer["good"]).partitions == {"t": [0, 1, 2]}
    assert Assignment.decode(answer["bad"]).partitions == {}
    assert "'bad'" in caplog.text


def test_replica_racks_are_read_from_both_clients_metadata():
    plugs = (kafka_python.KafkaPythonAssignor, aiokafka.AiokafkaAssignor)
    for cluster, plug in zip(metadata({"t": 2}, {"t": [["r1"], ["r0", "r2"]]}), plugs, strict=True):
        seen = ClientMetadata(cluster, plug.replicas)
        assert seen.replica_racks("t") == [["r1"], ["r0", "r2"]]
        assert (seen.partition_count("t"), seen.partition_count("unknown")) == (2, None)
        assert seen.replica_racks("unknown") == []


def test_kafka_python_s_explicit_form_knows_which_of_two_claims_is_older():
    cluster, _ = metadata({"t": 2}, None)
    members = [
        (id_, None, Subscription(topics=["t"], owned={"t": [number, 1]}, generation=generation).encode())
        for id_, number, generation in (("old", 0, 4), ("new", 1, 5))
    ]
    answer = led_by_kafka_python(kafka_python.assignor("cooperative-sticky"), cluster, members, follow=False)
    assert Assignment.decode(answer["old"]).partitions == {"t": [0]}
    assert Assignment.decode(answer["new"]).partitions == {"t": [1]}
