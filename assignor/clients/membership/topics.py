"""Report subscribed topics that a member cannot read, once each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kafka.errors import InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError

_LASTING = {error.errno for error in (InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError)}
"""Codes of errors that do not go away by themselves."""


def watch_topics(cluster: Any, told: Callable[[Mapping[str, int]], None]) -> None:
    """Call back with each update of a ``ClusterMetadata``, with the lasting errors of its topics."""
    update_metadata = cluster.update_metadata

    def update_and_tell(metadata: Any) -> Any:
        answer = update_metadata(metadata)
        told({topic.name: topic.error_code for topic in metadata.topics if topic.error_code in _LASTING})
        return answer

    cluster.update_metadata = update_and_tell


class ToldOnce:
    """Tracks the topic errors that were not reported yet."""

    def __init__(self) -> None:
        self._told: Mapping[str, int] = {}

    def news(self, errors: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return topics with new errors; an error that went away and came back is new."""
        new = [(topic, code) for topic, code in sorted(errors.items()) if self._told.get(topic) != code]
        self._told = errors
        return new
