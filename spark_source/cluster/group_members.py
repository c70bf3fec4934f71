"""The members with which a stream joins a group (``assignment.mode=member``); they fetch nothing.

Each is a `Membership` with its own thread, which sends heartbeats while a micro-batch is processed. Rebalances happen
only in `GroupMembers.take_part`, so no partition moves while a micro-batch is planned.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from time import monotonic, monotonic_ns
from typing import Any, Unpack

from kafka.errors import (
    GroupAuthorizationFailedError,
    IllegalStateError,
    InconsistentGroupProtocolError,
    KafkaError,
)
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Partition

from loadwise.assignor.clients.factory import Options
from loadwise.assignor.clients.membership import Membership, member_settings, planned_member
from loadwise.assignor.errors import AssignorError
from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import GroupUnavailableError, OptionError
from loadwise.spark_source.options.client_config import ClientConfig
from loadwise.spark_source.options.membership import GroupMember
from loadwise.spark_source.options.topics import Subscribe, SubscribePattern, Topics

logger = logging.getLogger(__name__)

TURN_S = 0.05
"""The wait for one member's join before the next member's turn, so that our members do not block each other."""
AGAIN_S = 60.0
"""How often kafka-python may log the same warning."""
_COMPLAINTS = logging.getLogger("kafka.cluster")
"""The logger that reports a missing subscribed topic ten times a second."""


class OnceAMinute(logging.Filter):
    """Passes each message once in `AGAIN_S`."""

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this message was not logged within the time, by the record's own clock."""
        text = record.getMessage()
        if record.created - self._logged_at.get(text, -AGAIN_S) < AGAIN_S:
            return False
        self._logged_at = {each: at for each, at in self._logged_at.items() if record.created - at < AGAIN_S}
        self._logged_at[text] = record.created
        return True


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a rebalance for the whole stream."""

    lost: frozenset[TopicPartition]
    gained: frozenset[TopicPartition]
    """Newly owned partitions, whose group commits must be read. May overlap with ``lost``."""


class _Member:
    """One member and its events. A `loadwise.assignor.clients.membership.member.RebalanceListener`."""

    def __init__(self, settings: Mapping[str, Any], **options: Unpack[Options]) -> None:
        self.given_up: set[TopicPartition] = set()
        self.taken: set[TopicPartition] = set()
        self.membership = Membership(self, planned_member(settings, **options))

    @property
    def owned(self) -> set[TopicPartition]:
        """The partitions that this member owns."""
        return {TopicPartition(*each) for each in self.membership.owned}

    def assigned(self, partitions: Collection[Partition]) -> None:
        """Add partitions."""
        self.taken.update(TopicPartition(*each) for each in partitions)

    def revoked(self, partitions: Collection[Partition]) -> None:
        """Remove partitions: their processed records are committed before the next join."""
        self.given_up.update(TopicPartition(*each) for each in partitions)

    def lost(self, partitions: Collection[Partition]) -> None:
        """Remove partitions that others may already own."""
        self.given_up.update(TopicPartition(*each) for each in partitions)


class GroupMembers:
    """All members of one stream. Raises `OptionError` for settings that a member does not support."""

    def __init__(self, config: ClientConfig, group: GroupMember, topics: Topics) -> None:
        self._group = group
        self._members: list[_Member] = []
        self._filter = OnceAMinute()
        _COMPLAINTS.addFilter(self._filter)
        try:
            settings = member_settings({"client.id": "loadwise-spark", **config.settings, **group.settings})
            for number in range(group.members):
                more: dict[str, Any] = {}
                if "group_instance_id" in settings and group.members > 1:
                    more["group_instance_id"] = f"{settings['group_instance_id']}-{number}"
                capacity = None if group.capacity is None else group.capacity / group.members
                member = _Member(settings | more, assignor=list(group.strategies), capacity=capacity)
                self._members.append(member)
                match topics:
                    case Subscribe(names):
                        member.membership.subscribe(names)
                    case SubscribePattern(pattern):
                        member.membership.subscribe(pattern=f".*(?:{pattern})")
        except (AssignorError, OSError, ValueError) as error:  # OSError: certificates that cannot be read
            self.close()
            raise OptionError("assignment.mode", f"member cannot join: {error}") from error

    def take_part(self, timeout_s: float) -> Changes | None:
        """Take part in the group's rebalances until it is stable; return None on timeout.

        Raises `GroupUnavailableError` if the group refuses a member.
        """
        deadline = monotonic() + timeout_s
        while True:
            for member in self._members:
                self._poll(member.membership, min(TURN_S, timeout_s))
            if not any(member.membership.joining for member in self._members):
                return self._changes()
            if monotonic() >= deadline:
                return None

    def commit(self, offsets: Mapping[TopicPartition, int], timeout_s: float) -> dict[TopicPartition, int]:
        """Commit owned offsets, each by its owner; return those that the coordinator accepted."""
        taken: dict[TopicPartition, int] = {}
        for member in self._members:
            owned = member.owned
            mine = {Partition(*place): OffsetAndMetadata(at, "", -1) for place, at in offsets.items() if place in owned}
            if not mine:
                continue
            try:
                done = member.membership.commit(mine, timeout_s).committed
            except KafkaError as error:
                logger.warning("group %s did not accept commits, so records may be read again: %r", self.group, error)
            else:
                taken |= {TopicPartition(*place): offset.offset for place, offset in done.items()}
        return taken

    def asked(self) -> None:
        """Note that Spark has processed its records, because it asks for more."""
        for member in self._members:
            if member.membership.busy is not None:
                member.membership.busy.polls(monotonic_ns())

    def given(self, sizes: Mapping[TopicPartition, int]) -> None:
        """Note the records given to Spark; the time until it asks again is work."""
        for member in self._members:
            mine: dict[str, int] = {}
            owned = member.owned
            for place, size in sizes.items():
                if place in owned:
                    mine[place.topic] = mine.get(place.topic, 0) + size
            if member.membership.busy is not None:
                member.membership.busy.given(mine, monotonic_ns())

    @property
    def group(self) -> str:
        """The group's id."""
        return self._group.group

    @property
    def generation(self) -> int:
        """The group's generation, -1 while the members have none."""
        try:
            return max(member.membership.metadata().generation for member in self._members)
        except IllegalStateError:
            return -1

    def close(self) -> None:
        """Leave the group; static members stay until their session expires."""
        for member in self._members:
            member.membership.close()
        self._members = []
        _COMPLAINTS.removeFilter(self._filter)

    def _poll(self, membership: Membership, timeout_s: float) -> None:
        try:
            membership.poll(timeout_s)
        except InconsistentGroupProtocolError:
            names = ", ".join(self._group.strategies)
            raise GroupUnavailableError(
                f"option assignment.strategy: group {self.group} has members without any of {names}; give one that"
                " all of them have, or a list in order of preference (weighted, range)"
            ) from None
        except GroupAuthorizationFailedError:
            raise GroupUnavailableError(
                f"option kafka.group.id: this user may not join group {self.group}; give it READ on the group"
            ) from None
        except KafkaError as error:
            if getattr(error, "retriable", False):
                logger.info("group %s: %r; retrying", self.group, error)
                return
            raise GroupUnavailableError(
                f"option kafka.group.id: group {self.group} refuses this stream as a member: {error}; start the query"
                " again, or give it another group"
            ) from error

    def _changes(self) -> Changes:
        """Return what has changed since the last call, in any order of the members' events.

        An evicted member may notice that only after another member of the stream was assigned its partitions.
        """
        lost = frozenset[TopicPartition]().union(*(member.given_up for member in self._members))
        changed = lost.union(*(member.taken for member in self._members))
        gained = changed.intersection(place for member in self._members for place in member.owned)
        for member in self._members:
            member.given_up.clear()
            member.taken.clear()
        return Changes(lost, gained)
