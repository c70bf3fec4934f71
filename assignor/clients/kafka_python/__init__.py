"""kafka-python: our assignors as its ``AbstractPartitionAssignor``, and a consumer factory.

Two ways to plug in::

    from loadwise import kafka_python_consumer

    consumer = kafka_python_consumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                     assignor="weighted", capacity=2.0)

    from loadwise.assignor.clients import kafka_python

    consumer = KafkaConsumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                             partition_assignment_strategy=[kafka_python.assignor("sticky")])

Prefer the factory. Hooks get neither credentials nor the group id, so only the factory can read the group's lag. It
also has the consumer's current partitions, so that a member which lost its place does not claim what others own.
"""

from __future__ import annotations

from loadwise.assignor.clients.kafka_python.version import TRIED

# The version is checked before anything of the client is imported.
# isort: split
from loadwise.assignor.clients.kafka_python.consumer import (
    KafkaPythonAssignor,
    KafkaPythonConsumer,
    assignor,
    kafka_python_consumer,
    planned,
)
from loadwise.assignor.clients.kafka_python.lag import KafkaPythonLag

__all__ = [
    "TRIED",
    "KafkaPythonAssignor",
    "KafkaPythonConsumer",
    "KafkaPythonLag",
    "assignor",
    "kafka_python_consumer",
    "planned",
]
