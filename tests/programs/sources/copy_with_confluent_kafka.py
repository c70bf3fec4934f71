"""Copies a topic in a transaction that commits the offsets too, with confluent-kafka, and describes what there is."""

import os

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
COMMON = {"bootstrap.servers": BROKER}

admin = AdminClient(COMMON)
for future in admin.create_topics([NewTopic(NAME, 2), NewTopic(f"{NAME}-copy", 1)]).values():
    future.result(30)
producer = Producer({**COMMON, "enable.idempotence": True})
for number in range(100):
    producer.produce(NAME, str(number))
assert producer.flush(30) == 0

consumer = Consumer({**COMMON, "group.id": NAME, "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([NAME])
copier = Producer({**COMMON, "transactional.id": NAME})
copier.init_transactions(30)
copied = 0
while copied < 100:
    records = consumer.consume(100, 1)
    if not records:
        continue
    copier.begin_transaction()
    for record in records:
        copier.produce(f"{NAME}-copy", record.value())
    copier.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30)
    copier.commit_transaction(30)
    copied += len(records)
consumer.close()

reader = Consumer({**COMMON, "group.id": f"{NAME}-reader", "isolation.level": "read_committed"})
reader.assign([TopicPartition(f"{NAME}-copy", 0, 0)])
read = [reader.poll(30).value() for _ in range(100)]
reader.close()
print("copied", len(set(read)))

(offsets,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(NAME)]).values()
assert sum(each.offset for each in offsets.result(30).topic_partitions) == 100
(latest,) = admin.list_offsets({TopicPartition(NAME, 0): OffsetSpec.latest()}).values()
assert latest.result(30).offset > 0
(configs,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, NAME)]).values()
assert configs.result(30)["cleanup.policy"].value == "delete"
(group,) = admin.describe_consumer_groups([NAME]).values()
print("described", group.result(30).state)
