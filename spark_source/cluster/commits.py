"""Commit a stream's progress to a consumer group, for monitoring of the group's lag (``commitGroup``).

The group is only a display: a stream resumes from its checkpoint. So a failed commit is a warning, and no micro-batch
fails or waits long for it. The consumer does not join; Kafka accepts such commits while the group has no members.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.client import Client

logger = logging.getLogger(__name__)

WAIT_S = 2.0
"""How long a micro-batch waits for the answer to a commit, which usually takes a millisecond."""


@dataclass(slots=True)
class GroupCommits:
    """The commits of one stream, through a client with that ``group.id``."""

    client: Client
    group: str
    committed: Mapping[TopicPartition, int] | None = None
    """The offsets committed last."""

    def commit(self, positions: Mapping[TopicPartition, int]) -> None:
        """Commit unless the group already has these offsets; log a warning on errors."""
        if positions == self.committed or not positions:
            return
        self.committed = dict(positions)
        self.client.commits.clear()
        places = [confluent_kafka.TopicPartition(*place, offset) for place, offset in positions.items()]
        try:
            self.client.consumer.commit(offsets=places, asynchronous=True)
        except confluent_kafka.KafkaException as error:
            self._warn(error.args[0].str())
            return
        deadline = monotonic() + WAIT_S
        while not self.client.commits and monotonic() < deadline:
            self.client.consumer.poll(0.05)
        problem = next((text for text in self.client.commits if text), "")
        if not self.client.commits:
            problem = f"no answer within {WAIT_S:g} s{self.client.why()}"
        if problem:
            self._warn(problem)

    def _warn(self, problem: str) -> None:
        self.committed = None  # so that the next micro-batch tries again
        logger.warning(
            "cannot commit offsets to group %s: %s. Its lag looks larger than it is. The query itself is not affected."
            " Check that the group has no members and that this user may commit to it, or leave out commitGroup",
            self.group,
            problem,
        )
