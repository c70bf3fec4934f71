"""Uses a consumer group's current assignment as the plan, one task a member (``assignment.mode=follow``).

The group may be of any client and of either protocol (DescribeGroups, ConsumerGroupDescribe). Task i reads the
partitions of member i, to replay or to shadow that member. A replayed micro-batch reads the same records, but its tasks
may differ, because the group may have changed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic, sleep

import confluent_kafka
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, MemberDescription

from loadwise.assignor.model import TopicPartition, utf16_order
from loadwise.spark_source.cluster.client import NO_ANSWER, admin_client
from loadwise.spark_source.errors import GroupUnavailableError, PlanError
from loadwise.spark_source.options.client_config import ClientConfig
from loadwise.spark_source.planning.plan import Plan
from loadwise.spark_source.task import OffsetRange, Task

logger = logging.getLogger(__name__)

UNASSIGNED = "(unassigned)"
"""The member of the last task, which reads partitions without an owner."""
ASK_AGAIN_S = 0.2
"""The time between two requests to a group that rebalances."""
MOST_WAIT_S = 3600.0
"""librdkafka's longest timeout of a request."""

_Error = confluent_kafka.KafkaError
_PASSING = NO_ANSWER | {
    _Error.COORDINATOR_LOAD_IN_PROGRESS,
    _Error.COORDINATOR_NOT_AVAILABLE,
    _Error.NOT_COORDINATOR,
    _Error.REQUEST_TIMED_OUT,
}
"""Errors while a broker restarts or another one takes over: librdkafka does not retry by itself."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A member of the group with its partitions."""

    member_id: str
    instance_id: str | None
    partitions: frozenset[TopicPartition]

    @property
    def rank(self) -> tuple[bool, bytes]:
        """Its place in Kafka's order: static members by instance id, then the others by member id."""
        return self.instance_id is None, utf16_order(self.instance_id or self.member_id)


def follow(ranges: Sequence[OffsetRange], owners: Sequence[Owner], group: str) -> Plan:
    """Return a plan with a task for each member, in Kafka's order of members.

    Partitions without an owner are one more task. Raises `PlanError` for a partition with two owners.
    """
    left = {TopicPartition(item.topic, item.partition): item for item in sorted(ranges)}
    tasks: list[Task] = []
    for owner in sorted(owners, key=lambda each: each.rank):
        mine = tuple(left.pop(place) for place in sorted(owner.partitions) if place in left)
        tasks.append(_task(owner.instance_id or owner.member_id, mine))
    doubled = sum(len(owner.partitions) for owner in owners) - len(frozenset().union(*(o.partitions for o in owners)))
    if doubled:
        raise PlanError(f"group {group}: {doubled} partitions have more than one owner; it is not a consumer group")
    unowned = tuple(item for item in left.values() if len(item))
    if unowned:
        logger.warning("group %s: no member owns %s; an extra task reads them", group, ", ".join(map(str, unowned)))
        tasks.append(_task(UNASSIGNED, unowned))
    return Plan(tuple(tasks), f"group {group}")


def _task(member: str, ranges: tuple[OffsetRange, ...]) -> Task:
    filled = tuple(item for item in ranges if len(item))
    return Task(member, filled, float(sum(map(len, filled))))


def owners_of(config: ClientConfig, group: str, *, look_up_ms: int | None = None) -> list[Owner]:
    """Return the group's members and their partitions, once it is stable and not empty.

    Raises `GroupUnavailableError` if it has no members or is not stable for ``kafka.default.api.timeout.ms``, if no
    broker describes it for ``look_up_ms`` (None: the same time), or if Kafka refuses to.
    """
    timeout_s = config.api_timeout_ms / 1000
    answer_by = monotonic() + (timeout_s if look_up_ms is None else look_up_ms / 1000)
    stable_by = monotonic() + timeout_s
    admin = admin_client(config)
    while True:
        left_s = stable_by - monotonic()
        try:
            described = _described(admin, group, min(max(left_s, ASK_AGAIN_S), MOST_WAIT_S))
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in _PASSING or monotonic() >= answer_by:
                raise _undescribed(group, error.args[0].str()) from None
            admin = admin_client(config)  # the old one remembers the old coordinator
            # After an outage the group has as much time as before it.
            stable_by = min(monotonic() + timeout_s, answer_by)
        else:
            if described.state == confluent_kafka.ConsumerGroupState.STABLE and described.members:
                return [_owner(member) for member in described.members]
            if left_s <= 0:
                problem = (
                    f"has been rebalancing for {config.api_timeout_ms} ms"
                    if described.members
                    else f"has had no members to follow for {config.api_timeout_ms} ms; start its consumers,"
                    " leave out assignment.mode=follow"
                )
                raise GroupUnavailableError(
                    f"option assignment.group: group {group} {problem}, or raise kafka.default.api.timeout.ms"
                )
        sleep(ASK_AGAIN_S)


def _owner(member: MemberDescription) -> Owner:
    places = member.assignment.topic_partitions if member.assignment else ()
    partitions = frozenset(TopicPartition(place.topic, place.partition) for place in places)
    return Owner(member.member_id, member.group_instance_id or None, partitions)


def _described(admin: AdminClient, group: str, wait_s: float) -> ConsumerGroupDescription:
    try:
        # librdkafka ends the process if a request to a coordinator is not answered (confluentinc/librdkafka#4605), so a
        # broker must have answered another request first.
        admin.describe_cluster(request_timeout=wait_s).result(wait_s + 1)
        return admin.describe_consumer_groups([group], request_timeout=wait_s)[group].result(wait_s + 1)
    except TimeoutError:
        raise _undescribed(group, "no answer in time") from None


def _undescribed(group: str, problem: str) -> GroupUnavailableError:
    return GroupUnavailableError(
        f"option assignment.group: Kafka does not describe group {group}: {problem}; check its name and the"
        " rights of this user, or raise kafka.default.api.timeout.ms"
    )
