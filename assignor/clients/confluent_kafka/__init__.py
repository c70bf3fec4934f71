"""confluent-kafka: consumers whose group uses our assignors, although librdkafka has no hook for them.

::

    from loadwise import confluent_consumer

    consumer = confluent_consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}, assignor="weighted")
    consumer.subscribe(["flights"], on_assign=..., on_revoke=..., on_lost=...)

A `Membership` joins the group and fetches nothing; librdkafka reads the assigned partitions and joins nothing. All
methods of ``Consumer`` exist and behave the same. Three things differ inside. Commits carry the member's id and
generation, which librdkafka does not have. `ConfluentConsumer` calls the rebalance callbacks in the user's ``poll``.
``consumer_group_metadata`` is the member's. docs/confluent-kafka.md lists the visible differences.
"""

from __future__ import annotations

from loadwise.assignor.clients.confluent_kafka.version import INSTALLED

# The version is checked before anything of the client is imported.
# isort: split
from loadwise.assignor.clients.confluent_kafka.consumer import ConfluentConsumer, confluent_consumer

__all__ = ["INSTALLED", "ConfluentConsumer", "confluent_consumer"]
