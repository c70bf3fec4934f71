"""Copies a topic in a group of two consumers, with kafka-python of before 3.0."""

import os
import threading

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
KafkaAdminClient(bootstrap_servers=BROKER).create_topics([NewTopic(NAME, 4, 1)])
producer = KafkaProducer(bootstrap_servers=BROKER, acks="all")
for number in range(100):
    producer.send(NAME, str(number).encode(), key=str(number).encode())
producer.flush(30)
copied = set()


def copy() -> None:
    consumer = KafkaConsumer(
        NAME, bootstrap_servers=BROKER, group_id=NAME, auto_offset_reset="earliest", consumer_timeout_ms=500
    )
    while len(copied) < 100:
        for record in consumer:
            producer.send(f"{NAME}-copy", record.value).get(30)
            copied.add(record.value)
    consumer.close()


threads = [threading.Thread(target=copy) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("copied", len(copied))
