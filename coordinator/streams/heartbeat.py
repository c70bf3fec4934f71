"""StreamsGroupHeartbeat (KIP-1071) as an event of its group, and the reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from loadwise.coordinator.groups.effects import EpochHeartbeatReply
from loadwise.coordinator.groups.events import KindHeartbeat
from loadwise.coordinator.streams.topology import Endpoint, InternalTopic, Status, Tasks, Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeat(KindHeartbeat):
    """A member joins, is alive, changes or leaves. None in a field means unchanged."""

    kind: ClassVar[str] = "streams"

    endpoint_epoch: int = -1
    """The version of its endpoint information."""
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    """The time limit for revoking tasks."""
    topology: Topology | None = None
    """Its topology; only sent when it joins."""
    owned: Tasks | None = None
    """Its tasks."""
    process_id: str | None = None
    endpoint: Endpoint | None = None
    tags: Mapping[str, str] | None = None
    repeats_config: bool = False
    """Whether the topology names a config of a topic twice; such a topology is none that a group can have."""
    repeats_tag: bool = False
    shuts_down: bool = False
    """Whether all members must stop, because this one has failed."""

    @property
    def size_bytes(self) -> int | None:
        """Return the bytes of its topology and tags."""
        if self.topology is None and not self.tags and self.epoch != 0:
            return None
        of_topology = 0 if self.topology is None else self.topology.size_bytes()
        return of_topology + sum(len(text) for tag in (self.tags or {}).items() for text in tag)


class EndpointPartitions(NamedTuple):
    """The partitions that a member's endpoint can answer for."""

    endpoint: Endpoint
    active: Sequence[tuple[str, Sequence[int]]]
    """Partitions by topic, with the state of active tasks."""
    standby: Sequence[tuple[str, Sequence[int]]]
    """The same for standby tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsHeartbeatReply(EpochHeartbeatReply):
    """The answer to a `StreamsHeartbeat`."""

    member_id: str = ""
    statuses: Sequence[Status] = ()
    assigned: Tasks | None = None
    """Its tasks; None: unchanged."""
    endpoint_epoch: int = 0
    """The newest endpoint information."""
    endpoints: Sequence[EndpointPartitions] | None = None
    """That information; None: the member has it already."""
    missing_topics: Sequence[InternalTopic] = ()
    """Topics to create for the group. They are not part of the response."""
