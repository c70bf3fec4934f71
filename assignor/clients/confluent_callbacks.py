"""The callbacks of rebalances that a user of confluent-kafka gives with ``subscribe``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

Callback = Callable[[Consumer, list[TopicPartition]], None]


class RebalanceCallbacks:
    """Calls them, and lets the consumer be told what to read in them only: elsewhere its group decides that."""

    def __init__(self) -> None:
        self.given: Mapping[str, Callback | None] = {}
        """``on_assign``, ``on_revoke`` and ``on_lost``, as the last ``subscribe`` was given them."""
        self.calling = ""
        """The name of the one that is being called."""
        self.left_to_us = False
        """Whether the last one has neither assigned nor unassigned anything by itself."""

    def call(self, name: str, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Call this one, if it was given. What it raises leaves this method."""
        self.left_to_us = True
        callback = self.given.get(name)
        if callback is None:
            return
        self.calling = name
        try:
            callback(consumer, partitions)
        finally:
            self.calling = ""

    def decides(self, *names: str) -> None:
        """One of these assigns or unassigns by itself. Raises ``KafkaException`` where none of them is being called."""
        if self.calling not in names:
            raise KafkaException(
                KafkaError(
                    KafkaError._STATE,
                    "a consumer with an assignor reads what its group gives it: call this in"
                    f" {' or '.join(names)} only, or use a stock Consumer to assign by hand",
                )
            )
        self.left_to_us = False
