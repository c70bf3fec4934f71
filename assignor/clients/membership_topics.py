"""Topics that a member subscribes to and cannot read: its user must hear of them, once each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError

_LASTING = {error.errno for error in (InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError)}
"""Codes of errors that do not pass by themselves."""


def watch_topics(cluster: Any, told: Callable[[Mapping[str, int]], None]) -> None:
    """Let a ``ClusterMetadata`` tell, with each update, which topics have which lasting error."""
    update_metadata = cluster.update_metadata

    def update_and_tell(metadata: Any) -> Any:
        answer = update_metadata(metadata)
        told({topic.name: topic.error_code for topic in metadata.topics if topic.error_code in _LASTING})
        return answer

    cluster.update_metadata = update_and_tell


class ToldOnce:
    """Which errors of topics the user has not heard of yet."""

    def __init__(self) -> None:
        self._told: Mapping[str, int] = {}

    def news(self, errors: Mapping[str, int]) -> list[tuple[str, int]]:
        """The topics whose errors are new; one that was there in between is new again."""
        new = [(topic, code) for topic, code in sorted(errors.items()) if self._told.get(topic) != code]
        self._told = errors
        return new
