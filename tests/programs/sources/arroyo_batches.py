"""Sentry's Arroyo: batches of a topic, reduced and written to another, offsets committed behind them."""

import os
import threading
import time
from datetime import UTC, datetime

from arroyo.backends.kafka import KafkaConsumer, KafkaPayload, KafkaProducer
from arroyo.backends.kafka.configuration import build_kafka_configuration, build_kafka_consumer_configuration
from arroyo.processing import StreamProcessor
from arroyo.processing.strategies import CommitOffsets, ProcessingStrategyFactory, Produce, RunTask
from arroyo.types import Topic

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
source, target = Topic(NAME), Topic(f"{NAME}-upper")
producer = KafkaProducer(build_kafka_configuration(default_config={"bootstrap.servers": BROKER}))
for number in range(50):
    producer.produce(source, KafkaPayload(None, f"hello {number}".encode(), [])).result(60)
done = []


class Factory(ProcessingStrategyFactory):
    def create_with_partitions(self, commit, partitions):  # noqa: ARG002
        def upper(message):
            done.append(message)
            return KafkaPayload(None, message.payload.value.upper(), [])

        return RunTask(upper, Produce(producer, target, CommitOffsets(commit)))


config = build_kafka_consumer_configuration(
    default_config={}, bootstrap_servers=[BROKER], group_id=NAME, auto_offset_reset="earliest"
)
processor = StreamProcessor(KafkaConsumer(config), source, Factory())


def stop():
    while len(done) < 50:
        time.sleep(0.1)
    processor.signal_shutdown()


threading.Thread(target=stop, daemon=True).start()
processor.run()
print("passed on", len(done), datetime.now(UTC))
