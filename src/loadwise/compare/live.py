"""The situation of a running group, read with kafka-python's admin client: who is in it, what it owns, its lag."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from loadwise.assignor.clients.kafka_python_lag import Admin, read_offsets
from loadwise.assignor.load.lag import PartitionOffsets, lag_of
from loadwise.assignor.model import Member
from loadwise.assignor.strategy import STRATEGIES, strategy
from loadwise.assignor.subscription import JoinedMember, read_member, read_subscription
from loadwise.compare.errors import BadInputError, LiveGroupError
from loadwise.compare.situation import Situation, Uncommitted
from loadwise.protocol.consumer import PROTOCOL_TYPE, Assignment
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import ProtocolError

# kafka-python is there: importing its lag reader says which extra brings it, where it is not.
from kafka.errors import KafkaError, KafkaTimeoutError  # isort: skip

_TIMEOUT_MS = 10_000
_STABLE = "Stable"
_GENERATION = 1
"""Brokers do not tell which generation it is. All members of a stable group are of one, so any number will do."""


def read_group(
    bootstrap_servers: str,
    group_id: str,
    *,
    uncommitted: Uncommitted = Uncommitted.EARLIEST,
    settings: Mapping[str, Any] | None = None,
) -> Situation:
    """Read a group. Raises `LiveGroupError` where it cannot be read or nobody is in it.

    Its load is its lag. Where nothing is committed, brokers do not know where the members began, which is what their
    ``auto.offset.reset`` says: ``uncommitted`` does it here, so that such a partition has all of its records before it,
    or none. ``settings`` are keyword arguments of kafka-python's clients: credentials, timeouts.
    """
    for path in map(Path, {(settings or {}).get(name, "/") for name in ("ssl_cafile", "ssl_certfile")}):
        if not path.exists():  # kafka-python would try on until it gives up, and say nothing of it
            raise BadInputError(f"there is no file {path}; see --command-config")
    failures = _Failures()
    log = logging.getLogger("kafka.net")
    log.addHandler(failures)
    try:
        admin = _GroupAdmin(
            bootstrap_servers=bootstrap_servers,
            **{
                "client_id": "loadwise-compare",
                "request_timeout_ms": _TIMEOUT_MS,
                "bootstrap_timeout_ms": _TIMEOUT_MS,
                **(settings or {}),
            },
        )
    except KafkaError as error:
        raise LiveGroupError(
            f"no Kafka answers at {bootstrap_servers} ({str(failures) or error}); see --bootstrap-servers, and"
            " security.protocol, sasl.* and ssl.* in --command-config"
        ) from error
    except ValueError as error:
        raise BadInputError(f"{bootstrap_servers!r} is no HOST:PORT ({error}); see --bootstrap-servers") from error
    finally:
        log.removeHandler(failures)
    try:
        described = admin.describe_groups([group_id])[group_id]
        members = members_of(described)
        topics = sorted({topic for member in members for topic in member.topics})
        metadata = {topic["name"]: topic["partitions"] for topic in admin.describe_topics(topics)} if topics else {}
        offsets = read_offsets(admin, group_id, topics)
        return Situation(
            about=f"The group {group_id} at {bootstrap_servers}, which runs under {described.protocol_data}."
            f"{_about_uncommitted(offsets, uncommitted)}",
            members=members,
            partitions={topic: len(partitions) for topic, partitions in metadata.items() if partitions},
            load=_lag(offsets, metadata, from_beginning=uncommitted is Uncommitted.EARLIEST),
            load_unit="records",
            racks=racks_of(admin.describe_cluster()["brokers"], metadata) if any(m.rack for m in members) else {},
        )
    except KafkaError as error:
        raise LiveGroupError(f"the group {group_id} at {bootstrap_servers} cannot be read: {error}") from error
    finally:
        admin.close()


def members_of(described: Any) -> list[Member]:
    """The members of a group as DescribeGroups has it (KIP-345's instance ids included).

    Raises `LiveGroupError` for a group that has no members or is no stable group of the classic consumer protocol.
    """
    group_id, members = described.group_id, described.members
    if described.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise LiveGroupError(f"the broker does not describe the group {group_id}: error {described.error_code}")
    if described.error_message and "not a classic group" in described.error_message:
        raise LiveGroupError(
            f"the group {group_id} runs under the new protocol (KIP-848), where the broker assigns; only classic groups"
            " can be compared: group.protocol=classic"
        )
    if described.protocol_type not in ("", PROTOCOL_TYPE):
        raise LiveGroupError(
            f"the group {group_id} is no group of consumers: its protocol type is {described.protocol_type!r}"
        )
    if not members:
        raise LiveGroupError(
            f"nobody is in the group {group_id}; check the name, and compare while its consumers are running"
        )
    if described.group_state != _STABLE:
        raise LiveGroupError(
            f"the group {group_id} is rebalancing (its state is {described.group_state}); try again when it is done"
        )
    return [_member(member, described.protocol_data) for member in members]


class _Failures(logging.Handler):
    """Keeps why connections failed: kafka-python tells it to its log; its user, only that time is over."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._reasons: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        for error in record.args if isinstance(record.args, tuple) else ():
            if isinstance(error, Exception) and not isinstance(error, KafkaTimeoutError):
                self._reasons[str(error)] = None

    def __str__(self) -> str:
        return "; ".join(self._reasons)


class _GroupAdmin(Admin):
    """kafka-python's client, which gives back its responses as they come.

    Its own processing turns what members say (user data, which are bytes) into text, and not reversibly.
    """

    def _describe_groups_process_response(self, response: Any) -> dict[str, Any]:
        return {group.group_id: group for group in response.groups}


def _member(member: Any, protocol: str) -> Member:
    """Who it is and what it wants; where the protocol is ours, with the capacity that it says it has."""
    subscription = read_subscription(member.member_id, bytes(member.member_metadata or b""))
    try:
        owned = Assignment.decode(bytes(member.member_assignment or b"")).partitions
    except ProtocolError as error:
        raise LiveGroupError(f"the assignment of member {member.member_id} cannot be read: {error}") from error
    joined = JoinedMember(
        id=member.member_id, subscription=subscription, instance_id=getattr(member, "group_instance_id", None)
    )
    claim = read_member(strategy(protocol if protocol in STRATEGIES else "range"), joined)
    return Member(
        id=claim.id,
        topics=claim.topics,
        owned=owned,
        generation=_GENERATION,
        instance_id=claim.instance_id,
        rack=claim.rack,
        capacity=claim.capacity,
    )


def _about_uncommitted(offsets: Mapping[tuple[str, int], PartitionOffsets], uncommitted: Uncommitted) -> str:
    count = sum(at.committed is None and at.beginning < at.end for at in offsets.values())
    if not count:
        return ""
    counted = "all of their records" if uncommitted is Uncommitted.EARLIEST else "no records"
    return f" {count} of its partitions have no commit: {counted} counted (--uncommitted {uncommitted})."


def _lag(
    offsets: Mapping[tuple[str, int], PartitionOffsets],
    metadata: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    from_beginning: bool,
) -> dict[str, list[float | None]]:
    lag: dict[str, list[float | None]] = {topic: [None] * len(partitions) for topic, partitions in metadata.items()}
    for (topic, partition), at in offsets.items():
        lag[topic][partition] = lag_of(at, from_beginning=from_beginning)
    return lag


def racks_of(
    brokers: Sequence[Mapping[str, Any]], metadata: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, list[list[str]]]:
    """The racks that hold each partition's replicas, for the topics of which any is known.

    ``brokers`` and ``metadata`` (topic to its partitions) are as kafka-python's admin client describes them.
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
