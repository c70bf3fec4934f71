"""What a group sees of the cluster's topics, and of how much there is to do in them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

if TYPE_CHECKING:  # numpy, for those who need it
    from loadwise.assignor.live.reading import Position


class TopicInfo(Protocol):
    """What a group has to know of a topic."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def id(self) -> UUID:
        """Its id (KIP-516)."""

    @property
    def partitions(self) -> Sequence[object]:
        """Its partitions; only their number counts."""


class TopicView(Protocol):
    """The topics of the cluster as a group sees them; `loadwise.coordinator.cluster.topics.Topics` is one."""

    version: int
    """Grows with every change."""

    def get(self, name: str) -> TopicInfo | None:
        """The topic of this name; None if there is none."""

    def get_by_id(self, topic_id: UUID | None) -> TopicInfo | None:
        """The topic of this id; None if there is none."""

    def racks(self, name: str) -> Sequence[Sequence[str]] | None:
        """The racks that hold each partition of a topic; None where nothing is known of racks."""

    def __iter__(self) -> Iterator[TopicInfo]:
        """All topics."""


class LoadView(Protocol):
    """Where partitions end and how far groups are; `loadwise.coordinator.groups.service.loads.LogLoads` is one."""

    def positions(self, group_id: str, names: Iterable[str], now_ms: int, /) -> Mapping[tuple[str, int], Position]:
        """The partitions of these topics as a group has them before it."""

    def ends_before(self, names: Iterable[str], at_ms: int, /) -> Mapping[tuple[str, int], int]:
        """Where the partitions of these topics ended at that time, as far as the logs tell."""


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


def fingerprint(names: Iterable[str], topics: TopicView) -> int:
    """A number that changes with those of some topics that there are, their ids and their numbers of partitions."""
    known = sorted(((topic.name, topic) for topic in map(topics.get, names) if topic), key=lambda each: each[0])
    if not known:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for name, topic in known:
        digest.update(f"{name}\0{topic.id}\0{len(topic.partitions)}\n".encode())
    return int.from_bytes(digest.digest())
