"""Makes members of the answers of DescribeGroups and ConsumerGroupDescribe, kafka-python's message objects. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadwise.assignor.load.lag import PartitionOffsets
from loadwise.assignor.model import Member
from loadwise.assignor.strategy import strategies, strategy
from loadwise.assignor.subscription import JoinedMember, read_member, read_subscription
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import ProtocolError
from loadwise.protocol.live_switch import LiveSwitch
from loadwise.protocol.steering_note import TOPICS
from loadwise.running_group.errors import UnreadableGroupError

_STABLE = "Stable"
_GENERATION = 1
"""DescribeGroups has no generation. All members of a stable group share one, so any number will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMember:
    """One member, with names that help a person to recognise it."""

    member: Member
    """Its topics and partitions. Its capacity is 1.0 unless its subscription has one."""
    client_id: str
    """The ``client.id`` of its consumer."""
    client_host: str
    """The address that it connects from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGroup:
    """A group at one moment."""

    group_id: str
    protocol: str
    """The name of its assignor: the clients' in a classic group, the broker's in a consumer group (KIP-848)."""
    is_classic: bool
    state: str
    """The broker's name: Stable, PreparingRebalance, Reconciling, …"""
    members: Sequence[RunningMember]
    steering: Mapping[str, str] = field(default_factory=dict)
    """Member id to rack id of the members of ``loadwise steer``, which are none of `members`: they read nothing."""

    @property
    def labels(self) -> dict[str, str]:
        """A short name for each member id: the client id, or the instance id of a static member.

        Members with the same name are numbered in the order of their member ids.
        """
        names = {each.member.id: each.member.instance_id or each.client_id or each.member.id for each in self.members}
        shared = {name for name, count in Counter(names.values()).items() if count > 1}
        seen: Counter[str] = Counter()
        labels: dict[str, str] = {}
        for member_id in sorted(names):
            name = names[member_id]
            seen[name] += 1
            labels[member_id] = f"{name} #{seen[name]}" if name in shared else name
        return labels


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """The state of a group and its partitions at one moment."""

    at_s: float
    """The moment, in seconds of a monotonic clock."""
    group: RunningGroup
    partitions: Mapping[str, int]
    """Number of partitions of each subscribed topic that exists."""
    offsets: Mapping[tuple[str, int], PartitionOffsets]
    """By (topic, partition), of the partitions that have a leader."""
    racks: Mapping[str, Sequence[Sequence[str]]]
    """Racks of the replicas of each partition; empty unless a member names a rack."""
    switch: LiveSwitch | None = None
    """The newest use of ``loadwise live``; None if there was none, or if it cannot be read."""


def classic_group(described: Any) -> RunningGroup | None:
    """Return the group from the answer of DescribeGroups (KIP-345's instance ids included).

    None if the group is one of the consumer protocol, or does not exist. Raises `UnreadableGroupError` if its members
    are no consumers.
    """
    group_id = described.group_id
    if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise UnreadableGroupError(f"the broker does not describe the group {group_id}: error {described.error_code}")
    if described.protocol_type not in ("", PROTOCOL_TYPE):
        raise UnreadableGroupError(
            f"the group {group_id} is not of consumers: its protocol type is {described.protocol_type!r}"
        )
    if not described.members:
        return None
    is_stable = described.group_state == _STABLE
    return RunningGroup(
        group_id=group_id,
        protocol=described.protocol_data,
        is_classic=True,
        state=described.group_state,
        members=[
            RunningMember(
                member=_classic_member(member, described.protocol_data, is_stable=is_stable),
                client_id=member.client_id,
                client_host=member.client_host,
            )
            for member in described.members
        ],
    )


def consumer_group(described: Any, topics: Collection[str]) -> RunningGroup | None:
    """Return the group from the answer of ConsumerGroupDescribe (KIP-848); None without members of that protocol.

    ``topics`` are the topics of the cluster, for members that subscribe by a regular expression. Raises
    `UnreadableGroupError`.
    """
    # Kafka 3.7 to 3.9 has the request, switched off by default.
    none_such = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    if described.error_code in none_such or not (described.error_code or described.members):
        return None
    if described.error_code != ErrorCode.NONE:
        reason = described.error_message or f"error {described.error_code}"
        raise UnreadableGroupError(f"the broker does not describe the group {described.group_id}: {reason}")
    steering = {
        member.member_id: member.rack_id or ""
        for member in described.members
        if member.subscribed_topic_names and set(member.subscribed_topic_names) <= set(TOPICS)
    }
    return RunningGroup(
        group_id=described.group_id,
        protocol=described.assignor_name,
        is_classic=False,
        state=described.group_state,
        members=[
            RunningMember(
                member=Member(
                    id=member.member_id,
                    topics=_subscribed(member, topics),
                    owned={each.topic_name: list(each.partitions) for each in member.assignment.topic_partitions},
                    generation=_GENERATION,
                    instance_id=member.instance_id,
                    rack=member.rack_id or None,
                ),
                client_id=member.client_id,
                client_host=member.client_host,
            )
            for member in described.members
            if member.member_id not in steering
        ],
        steering=steering,
    )


def _subscribed(member: Any, topics: Collection[str]) -> list[str]:
    """Return the topics of a member. Brokers match with RE2, which differs from Python in rare expressions."""
    names = set(member.subscribed_topic_names or ())
    if member.subscribed_topic_regex:
        try:
            matches = re.compile(member.subscribed_topic_regex).fullmatch
        except re.error as error:
            raise UnreadableGroupError(
                f"member {member.member_id} subscribes to the expression {member.subscribed_topic_regex!r}, which"
                f" Python cannot read ({error}); only the broker knows its topics"
            ) from error
        names.update(filter(matches, topics))
    return sorted(names)


def _classic_member(member: Any, protocol: str, *, is_stable: bool) -> Member:
    """Return a member with its topics and partitions, and with its capacity if the protocol is ours."""
    if not is_stable:  # the protocol is not chosen yet, and the bytes are missing
        return Member(id=member.member_id, topics=[], instance_id=getattr(member, "group_instance_id", None))
    subscription = read_subscription(member.member_id, bytes(member.member_metadata or b""))
    try:
        owned = Assignment.decode(bytes(member.member_assignment or b"")).partitions
    except ProtocolError as error:
        raise UnreadableGroupError(f"the assignment of member {member.member_id} cannot be read: {error}") from error
    joined = JoinedMember(
        id=member.member_id, subscription=subscription, instance_id=getattr(member, "group_instance_id", None)
    )
    read = read_member(strategy(protocol if protocol in strategies() else "range"), joined)
    return Member(
        id=read.id,
        topics=read.topics,
        owned=owned,
        generation=_GENERATION,
        instance_id=read.instance_id,
        rack=read.rack,
        capacity=read.capacity,
    )


def racks_of(
    brokers: Sequence[Mapping[str, Any]], metadata: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[list[str]]]:
    """Return the racks of each partition's replicas, for topics with a known rack.

    ``brokers`` and ``metadata`` (topic to its partitions) are those of kafka-python's admin client.
    """
    rack_of = {broker["broker_id"]: broker["rack"] for broker in brokers}
    racks: dict[str, list[list[str]]] = {}
    for topic, partitions in metadata.items():
        in_order = sorted(partitions, key=lambda partition: int(partition["partition_index"]))
        racks[topic] = [
            sorted({rack for node in partition["replica_nodes"] if (rack := rack_of.get(node))})
            for partition in in_order
        ]
    return {topic: replicas for topic, replicas in racks.items() if any(replicas)}
