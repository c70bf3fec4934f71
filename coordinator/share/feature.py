"""The share groups of one cluster: their members, and the records that each has acquired."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, ClassVar, cast
from uuid import UUID

from loadwise.coordinator.calls.call import Answer
from loadwise.coordinator.calls.refusal_shapes import PARTITIONS, Refused, Rows
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.feature import Feature
from loadwise.coordinator.groups.events import KindHeartbeat, Token
from loadwise.coordinator.groups.group import Group
from loadwise.coordinator.groups.topic_view import TopicView
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.share import limits
from loadwise.coordinator.share.delayed_fetches import DelayedShareFetches
from loadwise.coordinator.share.heartbeat import ShareHeartbeat, ShareHeartbeatReply
from loadwise.coordinator.share.limits import ShareGroupLimits
from loadwise.coordinator.share.records import (
    ShareGroupEpoch,
    ShareMemberAssignment,
    ShareMemberSubscription,
    ShareRecord,
    ShareState,
    ShareTarget,
    ShareTopic,
)
from loadwise.coordinator.share.service import Shares
from loadwise.protocol.error_codes import ErrorCode

if TYPE_CHECKING:  # every start of the coordinator would import it
    from loadwise.coordinator.share.group import ShareGroup


class ShareGroups(Feature):
    """The share groups of a cluster; a `GroupKind`."""

    flags: ClassVar[Mapping[str, tuple[int, int]]] = {"share.version": (0, 1)}
    settings = limits.SETTINGS
    group_numbers = limits.NUMBERS
    group_configs = limits.OTHERS
    refusals: ClassVar[Mapping[str, Refused]] = {
        "DescribeShareGroupOffsets": Refused(
            [Rows("groups", "groups", answered=Rows("topics", "topics", inner=PARTITIONS))]
        ),
        "ShareGroupDescribe": Refused([Rows("groups", "group_ids", "group_id")]),
    }
    kind = ShareHeartbeat.kind
    replaces_classic = False
    is_kept_empty = True

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.group_kind = self
        self.fetches = DelayedShareFetches()

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {
            "share group": ShareGroupEpoch,
            "share member": ShareMemberSubscription,
            "share target": ShareTarget,
            "share current": ShareMemberAssignment,
            "share topic": ShareTopic,
            "share state": ShareState,
        }

    def load(self, state: Snapshot) -> None:  # noqa: ARG002  (the groups have loaded it)
        """Begin without records in flight."""
        self.shares = Shares(self._cluster.groups, self._cluster.topics, self.limits)

    # ---- its groups ----

    def limits(self, group_id: str) -> ShareGroupLimits:
        """Return the limits of a group; its own configs override the brokers'."""
        configs = self._cluster.resource_configs.of(ConfigResourceType.GROUP, group_id)
        return self._cluster.settings.limits_of(ShareGroupLimits).of_group(configs)

    def replay(self, group_id: str, records: Iterable[ShareRecord], topics: TopicView, now_ms: int) -> ShareGroup:
        """Return a group from its records."""
        from loadwise.coordinator.share.group import ShareGroup  # noqa: PLC0415

        return ShareGroup.replay(group_id, records, topics, now_ms, self.limits(group_id))

    def configure(self, group: Group) -> None:
        """Give a group its current limits."""
        cast("ShareGroup", group).limits = self.limits(group.group_id)

    def refused(self, error: ErrorCode, message: str | None) -> ShareHeartbeatReply:
        """Return the reply to a refused heartbeat."""
        return ShareHeartbeatReply(error=error, message=message)

    def missing(self, event: KindHeartbeat) -> str:  # noqa: ARG002
        """Return what is missing for a heartbeat that finds no group."""
        return "Group"

    # ---- hooks ----

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when a lock expires or a fetch times out."""
        deadlines = (self.shares.next_deadline_ms, self.fetches.next_deadline_ms)
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def expire(self, now_ms: int) -> None:
        """Release records whose locks have expired."""
        self.shares.expire(now_ms)

    def take_answers(self, now_ms: int) -> Iterable[Answer]:
        """Return the answers to fetches that have acquired records, or that time out."""
        woken = self.shares.take_woken()
        if not self.fetches:
            return ()
        self.fetches.changed(woken)
        return self.fetches.take_completed(now_ms)

    def forget(self, token: Token) -> None:
        """Drop a waiting fetch."""
        self.fetches.pop(token)

    def disconnected(self, connection_id: int) -> None:
        """Release the records that a disconnected client had acquired."""
        self.shares.disconnected(connection_id)

    def log_changed(self, log: PartitionLog) -> None:
        """Let waiting fetches try again: there are more records, or room for them."""
        self.fetches.changed([log])

    def topics_deleted(self, topic_ids: Set[UUID]) -> None:
        """Delete the state of topics in all groups."""
        self.shares.delete_topics(topic_ids)

    def group_deleted(self, group_id: str) -> None:
        """Drop the records in flight of a group."""
        self.shares.forget_group(group_id)


FEATURE = ShareGroups
