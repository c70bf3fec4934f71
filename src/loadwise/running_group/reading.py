"""Reads a running group: its members, and the first, last and committed offset of each partition."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from loadwise.assignor.clients.kafka_python.lag import leaders_of, read_offsets
from loadwise.protocol.live_switch import LiveSwitch, newest, switch_group
from loadwise.running_group.admin import GroupAdmin
from loadwise.running_group.errors import NoMembersError, UnreadableGroupError
from loadwise.running_group.members import GroupReading, RunningGroup, classic_group, consumer_group, racks_of

from kafka.errors import KafkaError  # isort: skip

log = logging.getLogger(__name__)

_RETENTION = ("cleanup.policy", "retention.ms")


def read_group(admin: GroupAdmin, group_id: str) -> RunningGroup:
    """Return the group's members. Raises `NoMembersError`, `UnreadableGroupError` and `KafkaError`."""
    group = classic_group(admin.describe_classic(group_id))
    if group is None:
        described = admin.describe_consumer_group(group_id)
        if described is not None:
            by_regex = any(member.subscribed_topic_regex for member in described.members)
            group = consumer_group(described, admin.list_topics() if by_regex else ())
    if group is None or not group.members:
        raise NoMembersError(
            f"the group {group_id} has no members; check the name, and run this while its consumers run"
        )
    return group


def read(admin: GroupAdmin, group_id: str) -> GroupReading:
    """Read the group once. Raises `UnreadableGroupError`."""
    try:
        group = read_group(admin, group_id)
        topics = sorted({topic for each in group.members for topic in each.member.topics})
        described = admin.describe_topics(topics) if topics else []
        metadata = {topic["name"]: topic["partitions"] for topic in described if topic["partitions"]}
        at_s = time.monotonic()
        offsets = read_offsets(admin, group_id, leaders_of(described))
        knows_racks = any(each.member.rack for each in group.members)
        return GroupReading(
            at_s=at_s,
            group=group,
            partitions={topic: len(partitions) for topic, partitions in metadata.items()},
            offsets=offsets,
            racks=racks_of(admin.describe_cluster()["brokers"], metadata) if knows_racks else {},
            switch=_known_switch(admin, group_id),
        )
    except KafkaError as error:
        raise UnreadableGroupError(f"the group {group_id} cannot be read: {error}") from error


def read_switch(admin: GroupAdmin, group_id: str) -> LiveSwitch | None:
    """Return the newest use of ``loadwise live``; None if there was none. Raises `UnreadableGroupError`."""
    group = switch_group(group_id)
    try:
        return newest(each.metadata or "" for each in admin.list_group_offsets(group)[group].values())
    except KafkaError as error:
        raise UnreadableGroupError(f"the group {group} cannot be read: {error}") from error


def _known_switch(admin: GroupAdmin, group_id: str) -> LiveSwitch | None:
    try:
        return read_switch(admin, group_id)
    except UnreadableGroupError as error:  # the watch needs no right on that group
        log.debug("%s", error)
        return None


def read_rates(admin: GroupAdmin, reading: GroupReading, *, now_ms: int, over_s: float) -> dict[tuple[str, int], float]:
    """Return the records per second of the last ``over_s`` seconds, by their timestamps. Raises `UnreadableGroupError`.

    ``now_ms`` is the time of day, as in records. A partition without a record of that time has a rate of 0.
    """
    begin_ms = now_ms - round(over_s * 1000)
    asked = {TopicPartition(*partition): begin_ms for partition in reading.offsets}
    try:
        found = admin.list_partition_offsets(asked) if asked else {}
    except KafkaError as error:
        raise UnreadableGroupError(f"the arrival rates of {reading.group.group_id} cannot be read: {error}") from error
    rates: dict[tuple[str, int], float] = {}
    for partition, at in reading.offsets.items():
        first = found[TopicPartition(*partition)].offset
        rates[partition] = max(at.end - first, 0) / over_s if first >= 0 else 0.0
    return rates


def read_retention_ms(admin: GroupAdmin, topics: Sequence[str]) -> dict[str, int]:
    """Return the ``retention.ms`` of topics whose records are deleted by age.

    It has no topics if the user may not describe configs, or the broker does not answer.
    """
    wanted = dict.fromkeys(_RETENTION)
    resources = [ConfigResource(ConfigResourceType.TOPIC, topic, wanted) for topic in topics]
    try:
        found = admin.describe_configs(resources, config_filter="all").get("topic", {}) if topics else {}
    except KafkaError as error:
        log.warning("the retention of topics cannot be read (%s), so it is not shown", error)
        return {}
    kept: dict[str, int] = {}
    for topic, configs in found.items():
        policy, kept_ms = (configs.get(name, {}).get("value") for name in _RETENTION)
        if "delete" in (policy or "") and kept_ms is not None:
            kept[topic] = int(kept_ms)
    return kept
