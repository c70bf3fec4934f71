"""The rebalance callbacks that a confluent-kafka user passes to ``subscribe``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

Callback = Callable[[Consumer, list[TopicPartition]], None]


class RebalanceCallbacks:
    """Calls them. Only within them may the application choose what to read; elsewhere the group decides."""

    def __init__(self) -> None:
        self.given: Mapping[str, Callback | None] = {}
        """``on_assign``, ``on_revoke`` and ``on_lost`` of the last ``subscribe``."""
        self.calling = ""
        """The name of the callback that is running."""
        self.left_to_us = False
        """Whether the last callback neither assigned nor unassigned anything itself."""

    def call(self, name: str, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Call this one if it was given. Its exceptions propagate."""
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
        """Note that the callback assigns or unassigns. Raises ``KafkaException`` outside these callbacks."""
        if self.calling not in names:
            raise KafkaException(
                KafkaError(
                    KafkaError._STATE,
                    "a consumer with an assignor reads what its group assigns to it: call this only in"
                    f" {' or '.join(names)}, or use a stock Consumer to assign by hand",
                )
            )
        self.left_to_us = False
