"""The whole admin client of confluent-kafka, call by call."""

import os

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)  # fmt: skip
from confluent_kafka.error import KafkaException

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
admin = AdminClient({"bootstrap.servers": BROKER})


def told(what, futures):
    for key, future in futures.items():
        try:
            answer = future.result(30)
        except KafkaException as problem:
            answer = problem.args[0].name()
        print(
            what,
            key if isinstance(key, str) else type(key).__name__,
            answer if isinstance(answer, str) else type(answer).__name__,
        )


told("create", admin.create_topics([NewTopic(NAME, 2, config={"retention.ms": "1000000"}), NewTopic("a/b", 1)]))
told("create again", admin.create_topics([NewTopic(NAME, 2)]))
told("grow", admin.create_partitions([NewPartitions(NAME, 4)]))
told("shrink", admin.create_partitions([NewPartitions(NAME, 1)]))
topic = ConfigResource(ConfigResource.Type.TOPIC, NAME)
(configs,) = (future.result(30) for future in admin.describe_configs([topic]).values())
print("retention", configs["retention.ms"].value, configs["retention.ms"].source, configs["retention.ms"].is_default)
topic.add_incremental_config(ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND))
topic.add_incremental_config(ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE))
told("alter", admin.incremental_alter_configs([topic]))
bad = ConfigResource(ConfigResource.Type.TOPIC, NAME)
bad.add_incremental_config(ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET))
told("alter badly", admin.incremental_alter_configs([bad]))
told("broker", admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")]))
print("cluster", len(admin.describe_cluster(include_authorized_operations=True).result(30).nodes))
described = admin.describe_topics(TopicCollection([NAME]), include_authorized_operations=True)[NAME].result(30)
print("described", len(described.partitions), sorted(each.name for each in described.authorized_operations))
producer = Producer({"bootstrap.servers": BROKER})
for _ in range(10):
    producer.produce(NAME, b"hello", key=b"k", partition=0)
producer.flush(30)
consumer = Consumer(
    {"bootstrap.servers": BROKER, "group.id": NAME, "auto.offset.reset": "earliest", "enable.auto.commit": False}
)
consumer.subscribe([NAME])
assert len(consumer.consume(10, 60)) == 10
consumer.commit(asynchronous=False)
(group,) = (
    future.result(30) for future in admin.describe_consumer_groups([NAME], include_authorized_operations=True).values()
)
print(
    "group",
    group.state.name,
    group.type.name,
    len(group.members),
    group.partition_assignor,
    len(group.authorized_operations),
)
told("delete a live group", admin.delete_consumer_groups([NAME]))
consumer.close()
print("groups", NAME in [each.group_id for each in admin.list_consumer_groups().result(30).valid])
first = TopicPartition(NAME, 0)
for spec in (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp(), OffsetSpec.for_timestamp(1000)):
    (offset,) = (
        each.result(30)
        for each in admin.list_offsets({first: spec}, isolation_level=IsolationLevel.READ_COMMITTED).values()
    )
    print("offset", offset.offset)
(offsets,) = (
    each.result(30) for each in admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(NAME)]).values()
)
print("committed", sorted((each.partition, each.offset) for each in offsets.topic_partitions))
told("set", admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(NAME, [TopicPartition(NAME, 0, 3)])]))
(deleted,) = (each.result(30) for each in admin.delete_records([TopicPartition(NAME, 0, 5)]).values())
print("low watermark", deleted.low_watermark)
told("elect", {"it": admin.elect_leaders(__import__("confluent_kafka").ElectionType.PREFERRED, [first])})
told(
    "credentials",
    admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(NAME, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192), b"secret")]
    ),
)
print("scram", admin.describe_user_scram_credentials([NAME])[NAME].result(30).scram_credential_infos[0].iterations)
told(
    "no credentials",
    admin.alter_user_scram_credentials([UserScramCredentialDeletion(NAME, ScramMechanism.SCRAM_SHA_256)]),
)
acl = AclBinding(
    ResourceType.TOPIC, NAME, ResourcePatternType.LITERAL, "User:x", "*", AclOperation.READ, AclPermissionType.ALLOW
)
told("acl", admin.create_acls([acl]))
told("group", admin.delete_consumer_groups([NAME]))
told("topic", admin.delete_topics([NAME]))
told("topic again", admin.delete_topics(["none-" + NAME]))
print("all asked")
