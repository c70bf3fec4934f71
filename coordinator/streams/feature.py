"""The streams groups of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from loadwise.coordinator.calls.refusal_shapes import Refused, Rows
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.groups.events import KindHeartbeat
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.streams import limits
from loadwise.coordinator.streams.limits import StreamsGroupLimits
from loadwise.protocol.error_codes import ErrorCode

if TYPE_CHECKING:  # every start of the coordinator would import it
    from loadwise.coordinator.streams.group import StreamsGroup
    from loadwise.coordinator.streams.heartbeat import StreamsHeartbeatReply
    from loadwise.coordinator.streams.records import StreamsRecord

_MOST_FAILED = 1000
"""Maximum number of failed topics; beyond it, the one that expires first is dropped."""


class FailedTopics:
    """Why groups' internal topics could not be created. Members get the reason, which expires.

    Mirrors the ``ExpiringErrorCache`` of Kafka's brokers: until then, the topic is not tried again.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, tuple[int, str]] = {}

    def add(self, name: str, reason: str, until_ms: int) -> None:
        """Add the reason why a topic could not be created, until it expires."""
        self._reasons[name] = (until_ms, reason)
        if len(self._reasons) > _MOST_FAILED:
            del self._reasons[min(self._reasons, key=lambda each: self._reasons[each][0])]

    def of(self, names: Iterable[str], now_ms: int) -> dict[str, str]:
        """Return the current reasons for these topics, by name."""
        found = ((name, self._reasons.get(name)) for name in names)
        return {name: reason[1] for name, reason in found if reason is not None and reason[0] > now_ms}


class StreamsGroups(Feature):
    """The streams groups of a cluster; a `GroupKind`."""

    flags: ClassVar[Mapping[str, tuple[int, int]]] = {"streams.version": (0, 1)}
    settings = limits.SETTINGS
    group_numbers = limits.NUMBERS
    refusals: ClassVar[Mapping[str, Refused]] = {
        "StreamsGroupDescribe": Refused([Rows("groups", "group_ids", "group_id")]),
    }
    kind = "streams"
    replaces_classic = True
    is_kept_empty = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.group_kind = self
        self.failed_topics = FailedTopics()
        """Internal topics of groups that could not be created."""

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        from loadwise.coordinator.streams import records  # noqa: PLC0415

        return {
            "streams group": records.StreamsGroupEpoch,
            "streams topology": records.StreamsTopology,
            "streams member": records.StreamsMemberMetadata,
            "streams target": records.StreamsTarget,
            "streams current": records.StreamsMemberAssignment,
        }

    def group(self, group_id: str) -> StreamsGroup | None:
        """Return the streams group of this id; None if it does not exist or is of another kind."""
        from loadwise.coordinator.streams.group import StreamsGroup  # noqa: PLC0415

        group = self._cluster.groups.get(group_id)
        return group if isinstance(group, StreamsGroup) else None

    def limits(self, group_id: str) -> StreamsGroupLimits:
        """Return the limits of a group; its own configs override the brokers'."""
        configs = self._cluster.resource_configs.of(ConfigResourceType.GROUP, group_id)
        return self._cluster.settings.limits_of(StreamsGroupLimits).of_group(configs)

    def replay(self, group_id: str, records: Iterable[StreamsRecord], topics: TopicView, now_ms: int) -> StreamsGroup:
        """Return a group from its records."""
        from loadwise.coordinator.streams.group import StreamsGroup  # noqa: PLC0415

        return StreamsGroup.replay(group_id, records, topics, now_ms, self.limits(group_id))

    def configure(self, group: Group) -> None:
        """Give a group its current limits."""
        cast("StreamsGroup", group).limits = self.limits(group.group_id)

    def refused(self, error: ErrorCode, message: str | None) -> StreamsHeartbeatReply:
        """Return the reply to a refused heartbeat."""
        from loadwise.coordinator.streams.heartbeat import StreamsHeartbeatReply  # noqa: PLC0415

        return StreamsHeartbeatReply(error=error, message=message)

    def missing(self, event: KindHeartbeat) -> str:
        """Return what is missing for a heartbeat that finds no group."""
        return "Group" if event.epoch < 0 else "Streams group"


FEATURE = StreamsGroups
