"""aiokafka: our assignors as its ``AbstractPartitionAssignor``, and a consumer factory.

Two ways to plug in::

    from loadwise import aiokafka_consumer

    consumer = aiokafka_consumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                 assignor="weighted", capacity=2.0)

    from loadwise.assignor.clients import aiokafka

    consumer = AIOKafkaConsumer("flights", group_id="g", bootstrap_servers="localhost:9092",
                                partition_assignment_strategy=[aiokafka.assignor("sticky")])

Prefer the factory. The client passes its assignor neither the generation (aiokafka #1176: old partitions look current)
nor the other members' instance ids and racks. It is eager and sends one JoinGroup for each assignor, so the explicit
form needs one eager assignor. The factory's consumer reads the missing data from the client's coordinator. It joins
with any list of assignors at once, and is cooperative if they are.
"""

from __future__ import annotations

from loadwise.assignor.clients.aiokafka.version import TRIED

# The version is checked before anything of the client is imported.
# isort: split
from loadwise.assignor.clients.aiokafka.consumer import (
    AiokafkaAssignor,
    AiokafkaConsumer,
    aiokafka_consumer,
    assignor,
)
from loadwise.assignor.clients.aiokafka.lag import AiokafkaLag

__all__ = ["TRIED", "AiokafkaAssignor", "AiokafkaConsumer", "AiokafkaLag", "aiokafka_consumer", "assignor"]
