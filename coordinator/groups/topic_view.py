"""A group's view of the cluster's topics and their load."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from loadwise.coordinator.turns import Turns

if TYPE_CHECKING:  # imports numpy, which is optional
    from loadwise.assignor.live.reading import Position


class TopicInfo(Protocol):
    """A group's view of a topic."""

    @property
    def name(self) -> str:
        """Return its name."""

    @property
    def id(self) -> UUID:
        """Return its id (KIP-516)."""

    @property
    def partitions(self) -> Sequence[object]:
        """Return its partitions; only their number is used."""


class TopicView(Protocol):
    """A group's view of all topics; `loadwise.coordinator.cluster.topics.Topics` implements it."""

    version: int
    """Increments with every change."""

    def get(self, name: str) -> TopicInfo | None:
        """Return the topic of this name, or None."""

    def get_by_id(self, topic_id: UUID | None) -> TopicInfo | None:
        """Return the topic of this id, or None."""

    def racks(self, name: str) -> Sequence[Sequence[str]] | None:
        """Return the racks of each partition's replicas; None if racks are unknown."""

    def __iter__(self) -> Iterator[TopicInfo]:
        """Return all topics."""


class LoadView(Protocol):
    """Partitions' ends and groups' positions; `loadwise.coordinator.groups.service.loads.LogLoads` implements it."""

    def positions(self, group_id: str, names: Iterable[str], now_ms: int, /) -> Mapping[tuple[str, int], Position]:
        """Return the positions of a group in the partitions of these topics."""

    def ends_before(self, names: Iterable[str], at_ms: int, /) -> Mapping[tuple[str, int], int]:
        """Return the partitions' ends at a time, as far as the logs contain it."""


class _NoTopics:
    version = 0

    def get(self, name: str) -> TopicInfo | None:  # noqa: ARG002
        return None

    def get_by_id(self, topic_id: UUID | None) -> TopicInfo | None:  # noqa: ARG002
        return None

    def racks(self, name: str) -> Sequence[Sequence[str]] | None:  # noqa: ARG002
        return None

    def __iter__(self) -> Iterator[TopicInfo]:
        return iter(())


NO_TOPICS: TopicView = _NoTopics()
"""A cluster without topics."""


def by_name(partitions: Mapping[UUID, Iterable[int]], topics: TopicView) -> dict[str, list[int]]:
    """Return the partitions of existing topics by the topics' names, sorted."""
    found = ((topics.get_by_id(topic_id), numbers) for topic_id, numbers in partitions.items())
    return {topic.name: sorted(numbers) for topic, numbers in found if topic is not None}


def fingerprint(names: Iterable[str], topics: TopicView) -> Turns[int]:
    """Return a hash of the existing ones of these topics, with ids and partition counts; 0 without any."""
    digest, is_empty = hashlib.blake2b(digest_size=8), True
    for name in sorted(names):
        topic = topics.get(name)
        if topic is not None:
            digest.update(f"{name}\0{topic.id}\0{len(topic.partitions)}\n".encode())
            is_empty = False
        yield
    return 0 if is_empty else int.from_bytes(digest.digest())
