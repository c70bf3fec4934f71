"""Writes the switch of a group's rebalances for the load, with an admin client."""

from __future__ import annotations

from kafka import TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from loadwise.assignor.strategy import strategies
from loadwise.protocol.live_switch import LiveSwitch, switch_group
from loadwise.running_group.admin import GroupAdmin
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.running_group.reading import read_group


def write_switch(admin: GroupAdmin, group_id: str, *, off: bool, now_ms: int) -> LiveSwitch:
    """Switch a group; return the note. Raises `UnreadableGroupError` also for a group that reads no topic."""
    group, switch = switch_group(group_id), LiveSwitch(now_ms, off, now_ms)
    try:
        noted = sorted(admin.list_group_offsets(group)[group]) or _read_by(admin, group_id)
        commit = {noted[0]: OffsetAndMetadata(0, switch.encode(), None)}
        ((partition, error),) = admin.alter_group_offsets(group, commit).items()
        if error.errno:
            raise error(f"committing for {partition.topic}-{partition.partition}")
    except KafkaError as error:
        raise UnreadableGroupError(f"the group {group} cannot be written: {error}") from error
    return switch


def not_read(admin: GroupAdmin, group_id: str) -> str | None:
    """Return why no member reads the switch now; None if one may.

    Raises `UnreadableGroupError` for a group that has neither members nor commits, and if it cannot be described.
    """
    try:
        group = read_group(admin, group_id)
    except UnreadableGroupError:
        if not admin.list_group_offsets(group_id)[group_id]:
            raise
        return "the group has no members"
    except KafkaError as error:
        raise UnreadableGroupError(f"the group {group_id} cannot be described: {error}") from error
    if not group.is_classic:
        return "the broker assigns the partitions (KIP-848)"
    known = strategies().get(group.protocol)  # another name may be that of a user's own assignor
    load_aware = known is None or known.traits.load
    return None if load_aware else f"the assignor {group.protocol!r} requests no rebalance for the load"


def _read_by(admin: GroupAdmin, group_id: str) -> list[TopicPartition]:
    """Return a partition that the group has committed or reads; a note needs one that exists."""
    committed = sorted(admin.list_group_offsets(group_id)[group_id])
    if committed:
        return committed
    topics = sorted({topic for each in read_group(admin, group_id).members for topic in each.member.topics})
    described = admin.describe_topics(topics) if topics else []
    found = [TopicPartition(topic["name"], 0) for topic in described if topic["partitions"]]
    if not found:
        raise UnreadableGroupError(f"the group {group_id} reads no topic that exists; start a member first")
    return found
