"""Requests with wrong values: which of two errors a broker answers shows the order of its checks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from doubled_requests import Doubler, Request, Values, errors_in
from record_batches import batch
from transactors import NOW_MS

NO_ID = UUID(int=0)
WAIT_MS = 10_000


class Faulty(NamedTuple):
    """A valid request, and the wrong values of its parts."""

    api: str
    version: int
    made: Callable[..., Values]
    """The request with these parts; ``made()`` is valid."""
    wrong: Mapping[str, Sequence[Any]]
    """Wrong values by part; the part ``version`` is that of the request."""


def faults(faulty: Faulty) -> Iterator[tuple[Values, Request]]:
    """The valid request, those with one wrong value, and those with two; each after what is wrong with it."""
    pairs = itertools.combinations(faulty.wrong, 2)
    for parts in ((), *((part,) for part in faulty.wrong), *pairs):
        for values in itertools.product(*(faulty.wrong[part] for part in parts)):
            wrong = dict(zip(parts, values, strict=True))
            fields = {part: value for part, value in wrong.items() if part != "version"}
            yield wrong, (faulty.api, wrong.get("version", faulty.version), faulty.made(**fields))


def checks(broker: Doubler, api: str) -> Iterator[str]:
    """A line for each one or two parts of a request: the errors of their wrong values, in the order of `faults`.

    Several errors of one answer are joined by a plus.
    """
    lines: dict[str, list[str]] = {}
    for wrong, request in faults(FAULTY[api](broker)):
        answered = sorted({code for code in errors_in(broker.answer(request)) if code})
        parts = " ".join((api, *wrong))
        lines.setdefault(parts, []).append("+".join(map(str, answered)) or "0")
    return (f"{parts}: {' '.join(codes)}" for parts, codes in lines.items())


# ---- topics ----


def create_topics(broker: Doubler) -> Faulty:
    def made(
        *,
        name: str = broker.name,
        count: int = -1,
        factor: int = -1,
        config: tuple[str, str | None] = ("retention.ms", "5"),
        assignments: Mapping[int, Sequence[int]] = {},
        more: Sequence[Values] = (),
    ) -> Values:
        row = {
            "name": name, "num_partitions": count, "replication_factor": factor,
            "configs": [{"name": config[0], "value": config[1]}],
            "assignments": [{"partition_index": number, "broker_ids": ids} for number, ids in assignments.items()],
        }  # fmt: skip
        return {"topics": [row, *more], "timeout_ms": WAIT_MS, "validate_only": True}

    other = {"name": "a/b", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    wrong = {
        "name": ["", "a/b", broker.topic, broker.twin, "x" * 250, "__cluster_metadata"],
        "count": [0, -2, 2, 10_001],
        "factor": [0, -2, 3],
        "config": [("nonsense", "1"), ("retention.ms", "x"), ("retention.ms", None)],
        "assignments": [{0: [1]}, {0: [9]}, {1: [1]}, {0: []}, {0: [1, 1]}, {0: [-1]}, {0: [1], 1: [1, 9]}],
        "more": [[other]],
    }
    return Faulty("CreateTopics", 7, made, wrong)


def create_partitions(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, count: int = 3, assigned: Sequence[Sequence[int]] | None = None) -> Values:
        assignments = None if assigned is None else [{"broker_ids": each} for each in assigned]
        topics = [{"name": name, "count": count, "assignments": assignments}]
        return {"topics": topics, "timeout_ms": WAIT_MS, "validate_only": True}

    wrong = {
        "name": ["", "a/b", "missing"],
        "count": [0, -1, 1, 2],
        "assigned": [[], [[9]], [[1, 1]], [[]], [[1], [1]], [[-1]]],
    }
    return Faulty("CreatePartitions", 3, made, wrong)


def delete_topics(_: Doubler) -> Faulty:
    def made(*, name: str | None = "missing", topic_id: UUID = NO_ID) -> Values:
        return {"topics": [{"name": name, "topic_id": topic_id}], "timeout_ms": WAIT_MS}

    return Faulty("DeleteTopics", 6, made, {"name": [None, "", "a/b"], "topic_id": [UUID(int=77)]})


def metadata(broker: Doubler) -> Faulty:
    def made(*, name: str | None = broker.topic, topic_id: UUID = NO_ID, more: Sequence[Values] = ()) -> Values:
        topics = [{"name": name, "topic_id": topic_id}, *more]
        return {"topics": topics, "allow_auto_topic_creation": False}

    by_id = {"name": None, "topic_id": broker.topic_id}
    by_unknown_id = {"name": None, "topic_id": UUID(int=77)}
    by_name = {"name": broker.topic, "topic_id": NO_ID}
    wrong = {
        "version": [10, 11, 13],
        "name": ["", "a/b", "missing"],
        "topic_id": [UUID(int=77), broker.topic_id],
        "more": [[by_id], [by_unknown_id], [by_name], [by_id, by_unknown_id]],
    }
    return Faulty("Metadata", 12, made, wrong)


def describe_topic_partitions(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, limit: int = 10, cursor: Values | None = None) -> Values:
        return {"topics": [{"name": name}], "response_partition_limit": limit, "cursor": cursor}

    wrong = {
        "name": ["", "a/b", "missing"],
        "limit": [0, -1],
        "cursor": [{"topic_name": broker.topic, "partition_index": number} for number in (-1, 9)],
    }
    return Faulty("DescribeTopicPartitions", 0, made, wrong)


def elect_leaders(broker: Doubler) -> Faulty:
    def made(*, kind: int = 0, name: str = broker.topic, number: int = 0) -> Values:
        topics = [{"topic": name, "partitions": [number]}]
        return {"election_type": kind, "topic_partitions": topics, "timeout_ms": WAIT_MS}

    return Faulty("ElectLeaders", 2, made, {"kind": [1, 5, -1], "name": ["missing", "a/b", ""], "number": [99, -1]})


def alter_partition_reassignments(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0, replicas: Sequence[int] | None = (1,)) -> Values:
        listed = None if replicas is None else list(replicas)
        topics = [{"name": name, "partitions": [{"partition_index": number, "replicas": listed}]}]
        return {"topics": topics, "timeout_ms": WAIT_MS}

    replicas = [None, [], [9], [1, 1], [-1], [1, 9]]
    wrong = {"name": ["missing", "a/b", ""], "number": [99, -1], "replicas": replicas}
    return Faulty("AlterPartitionReassignments", 1, made, wrong)


# ---- records ----


def list_offsets(broker: Doubler) -> Faulty:
    def made(
        *, name: str = broker.topic, number: int = 0, timestamp: int = -1, epoch: int = -1, times: int = 1
    ) -> Values:
        row = {"partition_index": number, "timestamp": timestamp, "current_leader_epoch": epoch}
        topics = [{"name": name, "partitions": [dict(row) for _ in range(times)]}]
        return {"isolation_level": 0, "topics": topics, "timeout_ms": WAIT_MS}

    wrong = {
        "version": [1, 7, 8, 9, 11],
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "timestamp": [-3, -4, -5, -6, -7],
        "epoch": [5],
        "times": [2],
    }
    return Faulty("ListOffsets", 10, made, wrong)


def fetch(broker: Doubler) -> Faulty:
    def made(
        *,
        name: str = broker.topic,
        number: int = 0,
        offset: int = 0,
        epoch: int = -1,
        session: tuple[int, int] = (0, -1),
    ) -> Values:
        row = {
            "partition": number,
            "fetch_offset": offset,
            "partition_max_bytes": 99_999,
            "current_leader_epoch": epoch,
        }
        fields = {
            "session_id": session[0],
            "session_epoch": session[1],
            "topics": [{"topic": name, "partitions": [row]}],
        }
        return {**fields, "cluster_id": None, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 99_999, "rack_id": ""}

    wrong = {
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "offset": [99, -1],
        "epoch": [5],
        "session": [(77, 1), (77, -1)],
    }
    return Faulty("Fetch", 12, made, wrong)


def produce(broker: Doubler) -> Faulty:
    records = batch([b"x"], timestamp=NOW_MS)

    def made(
        *, name: str = broker.topic, number: int = 0, acks: int = -1, data: bytes | None = records,
        transactional_id: str | None = None,
    ) -> Values:  # fmt: skip
        topics = [{"name": name, "partition_data": [{"index": number, "records": data}]}]
        return {"transactional_id": transactional_id, "acks": acks, "timeout_ms": WAIT_MS, "topic_data": topics}

    broken = bytearray(records)
    broken[-1] ^= 1
    wrong = {
        "name": ["missing", "a/b", "", "__consumer_offsets"],
        "number": [99, -1],
        "acks": [2, -2],
        "data": [b"", bytes(broken), records[:20], records + records],
        "transactional_id": ["", "x"],
    }
    return Faulty("Produce", 9, made, wrong)


def delete_records(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0, offset: int = 0) -> Values:
        topics = [{"name": name, "partitions": [{"partition_index": number, "offset": offset}]}]
        return {"topics": topics, "timeout_ms": WAIT_MS}

    wrong = {"name": ["missing", "a/b", "", "__consumer_offsets"], "number": [99, -1], "offset": [99, -2]}
    return Faulty("DeleteRecords", 2, made, wrong)


def offset_for_leader_epoch(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0, known: int = -1, epoch: int = 0) -> Values:
        row = {"partition": number, "current_leader_epoch": known, "leader_epoch": epoch}
        return {"replica_id": -1, "topics": [{"topic": name, "partitions": [row]}]}

    wrong = {"name": ["missing", "a/b", ""], "number": [99, -1], "known": [5, -2], "epoch": [9, -1, -2]}
    return Faulty("OffsetForLeaderEpoch", 4, made, wrong)


def describe_producers(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0) -> Values:
        return {"topics": [{"name": name, "partition_indexes": [number]}]}

    return Faulty("DescribeProducers", 0, made, {"name": ["missing", "a/b", ""], "number": [99, -1]})


# ---- configs, quotas and users ----

KINDS = [(2, "missing"), (2, "a/b"), (2, ""), (4, "9"), (4, "x"), (8, "1"), (8, "x"), (16, "m"), (16, ""),
         (32, "g"), (32, ""), (9, "x"), (0, "x")]  # fmt: skip


def describe_configs(broker: Doubler) -> Faulty:
    def made(
        *, resource: tuple[int, str] = (2, broker.topic), keys: Sequence[str] | None = ("retention.ms",)
    ) -> Values:
        listed = None if keys is None else list(keys)
        row = {"resource_type": resource[0], "resource_name": resource[1], "configuration_keys": listed}
        return {"resources": [row]}

    return Faulty("DescribeConfigs", 4, made, {"resource": KINDS, "keys": [["nonsense"]]})


def alter_configs(broker: Doubler) -> Faulty:
    def made(
        *, resource: tuple[int, str] = (2, broker.topic), config: tuple[str, str | None] = ("retention.ms", "5")
    ) -> Values:
        configs = [{"name": config[0], "value": config[1]}]
        row = {"resource_type": resource[0], "resource_name": resource[1], "configs": configs}
        return {"resources": [row], "validate_only": True}

    wrong = {"resource": KINDS, "config": [("nonsense", "1"), ("retention.ms", "x"), ("retention.ms", None), ("", "1")]}
    return Faulty("AlterConfigs", 2, made, wrong)


def incremental_alter_configs(broker: Doubler) -> Faulty:
    def made(
        *, resource: tuple[int, str] = (2, broker.topic), name: str = "retention.ms", value: str | None = "5",
        operation: int = 0,
    ) -> Values:  # fmt: skip
        configs = [{"name": name, "value": value, "config_operation": operation}]
        row = {"resource_type": resource[0], "resource_name": resource[1], "configs": configs}
        return {"resources": [row], "validate_only": True}

    wrong = {"resource": KINDS, "name": ["nonsense", ""], "value": ["x", None], "operation": [1, 2, 3, 9, -1]}
    return Faulty("IncrementalAlterConfigs", 1, made, wrong)


def describe_client_quotas(broker: Doubler) -> Faulty:
    def made(
        *, kind: str = "user", match: tuple[int, str | None] = (0, broker.name), more: Sequence[Values] = ()
    ) -> Values:
        row = {"entity_type": kind, "match_type": match[0], "match": match[1]}
        return {"components": [row, *more], "strict": False}

    def also(kind: str, match: int, name: str | None) -> list[Values]:
        return [{"entity_type": kind, "match_type": match, "match": name}]

    wrong = {
        "kind": ["", "planet", "ip"],
        "match": [(0, None), (1, "x"), (2, "x"), (9, None), (1, None)],
        "more": [also("user", 2, None), also("ip", 9, None), also("", 0, "x"), also("planet", 0, "x")],
    }
    return Faulty("DescribeClientQuotas", 1, made, wrong)


def alter_client_quotas(broker: Doubler) -> Faulty:
    def made(
        *, entity: Sequence[tuple[str, str | None]] = (("user", broker.name),), key: str = "producer_byte_rate",
        value: float = 5.0, times: int = 1,
    ) -> Values:  # fmt: skip
        rows = [{"entity_type": kind, "entity_name": name} for kind, name in entity]
        ops = [{"key": key, "value": value, "remove": False}] * times
        return {"entries": [{"entity": rows, "ops": ops}], "validate_only": True}

    wrong = {
        "entity": [[], [("", "x")], [("planet", "x")], [("user", "")], [("ip", "1.2.3.4")], [("ip", "a b")],
                   [("user", "x"), ("ip", "1.2.3.4")], [("user", ""), ("user", "x")], [("user", "x"), ("user", "")],
                   [("planet", "x"), ("user", "")], [("user", None)]],
        "key": ["nonsense", "connection_creation_rate", ""],
        "value": [0.0, -1.0, 0.5],
        "times": [2, 0],
    }  # fmt: skip
    return Faulty("AlterClientQuotas", 1, made, wrong)


def describe_user_scram_credentials(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.name, times: int = 1) -> Values:
        return {"users": [{"name": name}] * times}

    return Faulty("DescribeUserScramCredentials", 0, made, {"name": ["", "é"], "times": [2, 3]})


def alter_user_scram_credentials(broker: Doubler) -> Faulty:
    """The valid one makes the user, which the deletions of later ones find."""

    def made(
        *, name: str = broker.name, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt",
        password: bytes = b"x" * 32, deletions: Sequence[tuple[str, int]] = (),
    ) -> Values:  # fmt: skip
        row = {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": salt}
        deleted = [{"name": user, "mechanism": kind} for user, kind in deletions]
        return {"deletions": deleted, "upsertions": [{**row, "salted_password": password}]}

    wrong = {
        "name": [""],
        "mechanism": [0, 9],
        "iterations": [4095, 16_385, -1],
        "salt": [b""],
        "password": [b""],
        "deletions": [[(broker.name, 9)], [("", 1)], [("missing", 1)], [("", 1), ("", 9)]],
    }
    return Faulty("AlterUserScramCredentials", 0, made, wrong)


# ---- groups ----


def offset_commit(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.group, member: str = "", epoch: int = -1, instance: str | None = None,
        name: str = broker.topic, number: int = 0, text: str = "",
    ) -> Values:  # fmt: skip
        row = {"partition_index": number, "committed_offset": 1, "committed_metadata": text}
        fields = {"group_id": group, "member_id": member, "generation_id_or_member_epoch": epoch}
        return {**fields, "group_instance_id": instance, "topics": [{"name": name, "partitions": [row]}]}

    wrong = {
        "version": [8],
        "group": ["", broker.missing],
        "member": ["m"],
        "epoch": [0, 5, -2],
        "instance": ["i"],
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "text": ["x" * 4097],
    }
    return Faulty("OffsetCommit", 9, made, wrong)


def offset_fetch(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.group, member: str | None = None, epoch: int = -1,
        topics: Sequence[tuple[str, int]] | None = ((broker.topic, 0),),
    ) -> Values:  # fmt: skip
        named = None if topics is None else [{"name": name, "partition_indexes": [number]} for name, number in topics]
        row = {"group_id": group, "member_id": member, "member_epoch": epoch, "topics": named}
        return {"groups": [row], "require_stable": False}

    wrong = {
        "version": [8],
        "group": ["", broker.missing],
        "member": ["", "m"],
        "epoch": [0, 5, -2],
        "topics": [[], [("missing", 0)], [("", 0)], [(broker.topic, 9)]],
    }
    return Faulty("OffsetFetch", 9, made, wrong)


def offset_delete(broker: Doubler) -> Faulty:
    def made(*, group: str = broker.group, name: str = broker.topic, number: int = 1) -> Values:
        return {"group_id": group, "topics": [{"name": name, "partitions": [{"partition_index": number}]}]}

    wrong = {"group": ["", broker.missing], "name": ["missing", "a/b", ""], "number": [99, -1]}
    return Faulty("OffsetDelete", 0, made, wrong)


def join_group(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.name, member: str = "", timeout_ms: int = 30_000, kind: str = "consumer",
        protocols: Sequence[str] = ("range",),
    ) -> Values:  # fmt: skip
        offered = [{"name": name, "metadata": b"m"} for name in protocols]
        fields = {"group_id": group, "member_id": member, "session_timeout_ms": timeout_ms, "protocols": offered}
        return {**fields, "rebalance_timeout_ms": 1, "group_instance_id": None, "protocol_type": kind, "reason": ""}

    wrong = {
        "group": [""],
        "member": ["m"],
        "timeout_ms": [10**9],
        "kind": ["", "connect"],
        "protocols": [[], [""]],
    }
    return Faulty("JoinGroup", 9, made, wrong)


def sync_group(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.group, member: str = "m", generation: int = 1, kind: str | None = "consumer",
        protocol: str | None = "range", instance: str | None = None,
    ) -> Values:  # fmt: skip
        fields = {"group_id": group, "member_id": member, "generation_id": generation, "group_instance_id": instance}
        return {**fields, "protocol_type": kind, "protocol_name": protocol, "assignments": []}

    wrong = {
        "group": ["", broker.missing], "member": [""], "generation": [-1, 9], "kind": ["connect", None],
        "protocol": ["x", None], "instance": ["i"],
    }  # fmt: skip
    return Faulty("SyncGroup", 5, made, wrong)


def heartbeat(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.group, member: str = "m", generation: int = 1, instance: str | None = None
    ) -> Values:
        return {"group_id": group, "member_id": member, "generation_id": generation, "group_instance_id": instance}

    wrong = {"group": ["", broker.missing], "member": [""], "generation": [-1, 9], "instance": ["i"]}
    return Faulty("Heartbeat", 4, made, wrong)


def leave_group(broker: Doubler) -> Faulty:
    def made(*, group: str = broker.group, member: str = "m", instance: str | None = None) -> Values:
        members = [{"member_id": member, "group_instance_id": instance, "reason": ""}]
        return {"group_id": group, "members": members}

    return Faulty("LeaveGroup", 5, made, {"group": ["", broker.missing], "member": [""], "instance": ["i", ""]})


def of_groups(api: str, version: int, field: str) -> Callable[[Doubler], Faulty]:
    def faulty(broker: Doubler) -> Faulty:
        def made(*, group: str = broker.group, more: Sequence[str] = ()) -> Values:
            return {field: [group, *more]}

        return Faulty(api, version, made, {"group": [broker.missing], "more": [[broker.missing], ["x y"]]})

    return faulty


def consumer_group_heartbeat(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.name, member: str = str(uuid4()), epoch: int = 7, instance: str | None = None,
        rack: str | None = None, timeout_ms: int = 30_000, names: Sequence[str] | None = ("t",),
        pattern: str | None = None, assignor: str | None = None, owned: Sequence[Values] | None = (),
    ) -> Values:  # fmt: skip
        fields: Values = {"group_id": group, "member_id": member, "member_epoch": epoch, "instance_id": instance}
        fields |= {"rack_id": rack, "rebalance_timeout_ms": timeout_ms, "server_assignor": assignor}
        fields |= {"subscribed_topic_names": None if names is None else list(names)}
        fields |= {"topic_partitions": None if owned is None else list(owned)}
        return {**fields, "subscribed_topic_regex": pattern}

    wrong = {
        "group": [""],
        "member": [""],
        "epoch": [0, -1, -2, -3],
        "instance": ["", "i"],
        "rack": [""],
        "timeout_ms": [-1, 0, -2],
        "names": [None, [], [""]],
        "pattern": ["", "("],
        "assignor": ["nonsense", ""],
        "owned": [None, [{"topic_id": UUID(int=77), "partitions": [0]}]],
    }
    return Faulty("ConsumerGroupHeartbeat", 1, made, wrong)


def share_group_heartbeat(broker: Doubler) -> Faulty:
    def made(
        *, group: str = broker.name, member: str = str(uuid4()), epoch: int = 7, rack: str | None = None,
        names: Sequence[str] | None = ("t",),
    ) -> Values:  # fmt: skip
        listed = None if names is None else list(names)
        fields = {"group_id": group, "member_id": member, "member_epoch": epoch, "rack_id": rack}
        return {**fields, "subscribed_topic_names": listed}

    wrong = {"group": [""], "member": [""], "epoch": [-1, -2], "rack": [""], "names": [None, [], [""]]}
    return Faulty("ShareGroupHeartbeat", 1, made, wrong)


# ---- transactions ----


def init_producer_id(broker: Doubler) -> Faulty:
    def made(
        *, transactional_id: str | None = broker.transactional_id, timeout_ms: int = 60_000,
        producer: tuple[int, int] = (-1, -1),
    ) -> Values:  # fmt: skip
        fields = {"transactional_id": transactional_id, "transaction_timeout_ms": timeout_ms}
        return {**fields, "producer_id": producer[0], "producer_epoch": producer[1]}

    wrong = {
        "transactional_id": ["", None],
        "timeout_ms": [0, -1, 10**9],
        "producer": [(5, -1), (-1, 5), (2**40, 5), (-2, -1), (-1, -2)],
    }
    return Faulty("InitProducerId", 4, made, wrong)


def _of_producer(broker: Doubler) -> tuple[tuple[int, int], dict[str, Sequence[Any]]]:
    """The producer of the transactional id, and what may be wrong about it."""
    who = broker.begin()
    return who, {"transactional_id": ["", "missing"], "producer_id": [who[0] + 10**6, -1], "epoch": [who[1] + 1, -1]}


def add_partitions_to_txn(broker: Doubler) -> Faulty:
    who, wrong = _of_producer(broker)

    def made(
        *, transactional_id: str = broker.transactional_id, producer_id: int = who[0], epoch: int = who[1],
        name: str = broker.topic, number: int = 0,
    ) -> Values:  # fmt: skip
        fields = {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch}
        fields |= {"topics": [{"name": name, "partitions": [number]}]}
        return {f"v3_and_below_{key}": value for key, value in fields.items()}

    more = {"version": [0, 1, 2], "name": ["missing", "a/b", "", "__consumer_offsets"], "number": [99, -1]}
    return Faulty("AddPartitionsToTxn", 3, made, {**wrong, **more})


def add_offsets_to_txn(broker: Doubler) -> Faulty:
    who, wrong = _of_producer(broker)

    def made(
        *, transactional_id: str = broker.transactional_id, producer_id: int = who[0], epoch: int = who[1],
        group: str = broker.group,
    ) -> Values:  # fmt: skip
        fields = {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch}
        return {**fields, "group_id": group}

    return Faulty("AddOffsetsToTxn", 3, made, {**wrong, "version": [0, 1, 2], "group": [""]})


def txn_offset_commit(broker: Doubler) -> Faulty:
    who, wrong = _of_producer(broker)

    def made(
        *, transactional_id: str = broker.transactional_id, producer_id: int = who[0], epoch: int = who[1],
        group: str = broker.group, generation: int = -1, member: str = "", name: str = broker.topic, number: int = 0,
        text: str = "",
    ) -> Values:  # fmt: skip
        row = {"partition_index": number, "committed_offset": 7, "committed_metadata": text}
        fields = {"transactional_id": transactional_id, "group_id": group, "producer_id": producer_id}
        fields |= {"producer_epoch": epoch, "generation_id": generation, "member_id": member}
        return {**fields, "topics": [{"name": name, "partitions": [row]}]}

    more = {
        "version": [4],
        "group": ["", broker.missing],
        "generation": [0, 5],
        "member": ["m"],
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "text": ["x" * 4097],
    }
    del wrong["transactional_id"]  # Kafka does not check it again once the producer has written in its transaction
    return Faulty("TxnOffsetCommit", 5, made, {**wrong, **more})


def end_txn(broker: Doubler) -> Faulty:
    who, wrong = _of_producer(broker)

    def made(
        *, transactional_id: str = broker.transactional_id, producer_id: int = who[0], epoch: int = who[1],
        committed: bool = True,
    ) -> Values:  # fmt: skip
        fields = {"transactional_id": transactional_id, "producer_id": producer_id, "producer_epoch": epoch}
        return {**fields, "committed": committed}

    return Faulty("EndTxn", 4, made, {**wrong, "version": [0, 1, 2, 5], "committed": [False]})


def list_transactions(_: Doubler) -> Faulty:
    def made(*, states: Sequence[str] = (), ids: Sequence[int] = (2**40,), pattern: str | None = None) -> Values:
        fields = {"state_filters": list(states), "producer_id_filters": list(ids), "duration_filter": -1}
        return {**fields, "transactional_id_pattern": pattern}

    wrong = {"states": [["Nonsense"], ["Empty"], [""]], "ids": [[-1]], "pattern": ["(", ""]}
    return Faulty("ListTransactions", 2, made, wrong)


# ---- share groups ----


def describe_share_group_offsets(broker: Doubler) -> Faulty:
    def made(*, group: str = broker.missing, topics: Sequence[tuple[str, int]] | None = ((broker.topic, 0),)) -> Values:
        named = None if topics is None else [{"topic_name": name, "partitions": [number]} for name, number in topics]
        return {"groups": [{"group_id": group, "topics": named}]}

    topics = [None, [], [("missing", 0)], [("", 0)], [("a/b", 0)], [(broker.topic, 99)], [(broker.topic, -1)]]
    return Faulty("DescribeShareGroupOffsets", 1, made, {"group": ["", broker.group], "topics": topics})


def alter_share_group_offsets(broker: Doubler) -> Faulty:
    def made(*, group: str = broker.missing, name: str = broker.topic, number: int = 0, offset: int = 1) -> Values:
        topics = [{"topic_name": name, "partitions": [{"partition_index": number, "start_offset": offset}]}]
        return {"group_id": group, "topics": topics}

    wrong = {
        "group": ["", broker.group],
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "offset": [99, -1, -2],
    }
    return Faulty("AlterShareGroupOffsets", 0, made, wrong)


def delete_share_group_offsets(broker: Doubler) -> Faulty:
    def made(*, group: str = broker.missing, names: Sequence[str] = (broker.topic,)) -> Values:
        return {"group_id": group, "topics": [{"topic_name": name} for name in names]}

    wrong = {"group": ["", broker.group], "names": [[], ["missing"], ["a/b"], [""]]}
    return Faulty("DeleteShareGroupOffsets", 0, made, wrong)


# ---- others ----


def describe_log_dirs(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0) -> Values:
        return {"topics": [{"topic": name, "partitions": [number]}]}

    return Faulty("DescribeLogDirs", 4, made, {"name": ["missing", "a/b", ""], "number": [99, -1]})


def list_partition_reassignments(broker: Doubler) -> Faulty:
    def made(*, name: str = broker.topic, number: int = 0) -> Values:
        return {"topics": [{"name": name, "partition_indexes": [number]}], "timeout_ms": WAIT_MS}

    return Faulty("ListPartitionReassignments", 0, made, {"name": ["missing", "a/b", ""], "number": [99, -1]})


def describe_quorum(_: Doubler) -> Faulty:
    def made(*, name: str = "__cluster_metadata", number: int = 0) -> Values:
        return {"topics": [{"topic_name": name, "partitions": [{"partition_index": number}]}]}

    return Faulty("DescribeQuorum", 2, made, {"version": [0, 1], "name": ["missing", ""], "number": [1, -1]})


def write_txn_markers(broker: Doubler) -> Faulty:
    def made(
        *, producer_id: int = 10**6, epoch: int = 0, name: str = broker.topic, number: int = 0, coordinator: int = 0
    ) -> Values:
        row = {"producer_id": producer_id, "producer_epoch": epoch, "transaction_result": False}
        topics = [{"name": name, "partition_indexes": [number]}]
        return {"markers": [{**row, "topics": topics, "coordinator_epoch": coordinator, "transaction_version": 0}]}

    wrong = {
        "producer_id": [-1],
        "epoch": [-1],
        "name": ["missing", "a/b", ""],
        "number": [99, -1],
        "coordinator": [-1],
    }
    return Faulty("WriteTxnMarkers", 1, made, wrong)


def describe_cluster(_: Doubler) -> Faulty:
    def made(*, kind: int = 1) -> Values:
        return {"endpoint_type": kind, "include_cluster_authorized_operations": False}

    return Faulty("DescribeCluster", 1, made, {"kind": [0, 2, 3, -1]})


def unregister_broker(_: Doubler) -> Faulty:
    def made(*, broker_id: int = 9) -> Values:
        return {"broker_id": broker_id}

    return Faulty("UnregisterBroker", 0, made, {"broker_id": [-1]})


def find_coordinator(broker: Doubler) -> Faulty:
    def made(*, kind: int = 0, keys: Sequence[str] = (broker.group,)) -> Values:
        return {"key_type": kind, "coordinator_keys": list(keys)}

    return Faulty("FindCoordinator", 4, made, {"kind": [1, 2, 3, 9, -1], "keys": [[""], [], ["x:y"], ["", "x"]]})


def list_groups(_: Doubler) -> Faulty:
    def made(*, states: Sequence[str] = ("Dead",), kinds: Sequence[str] = ("classic",)) -> Values:
        return {"states_filter": list(states), "types_filter": list(kinds)}

    return Faulty("ListGroups", 5, made, {"states": [["Nonsense"], [""]], "kinds": [["nonsense"], [""]]})


def list_config_resources(_: Doubler) -> Faulty:
    def made(*, kinds: Sequence[int] = (8,)) -> Values:
        return {"resource_types": list(kinds)}

    return Faulty("ListConfigResources", 1, made, {"kinds": [[0], [9], [8, 9], [-1]]})


FAULTY: Mapping[str, Callable[[Doubler], Faulty]] = {
    each.__name__: each
    for each in (
        create_topics, create_partitions, delete_topics, metadata, describe_topic_partitions, elect_leaders,
        alter_partition_reassignments, list_offsets, fetch, produce, delete_records, offset_for_leader_epoch,
        describe_producers, describe_configs, alter_configs, incremental_alter_configs, describe_client_quotas,
        alter_client_quotas, describe_user_scram_credentials, alter_user_scram_credentials, offset_commit,
        offset_fetch, offset_delete, join_group, sync_group, heartbeat, leave_group, consumer_group_heartbeat,
        share_group_heartbeat, init_producer_id, add_partitions_to_txn, add_offsets_to_txn, txn_offset_commit, end_txn,
        list_transactions, find_coordinator, list_groups, list_config_resources, describe_share_group_offsets,
        alter_share_group_offsets, delete_share_group_offsets, describe_log_dirs, list_partition_reassignments,
        describe_quorum, write_txn_markers, describe_cluster, unregister_broker,
    )
} | {
    "describe_groups": of_groups("DescribeGroups", 6, "groups"),
    "delete_groups": of_groups("DeleteGroups", 2, "groups_names"),
    "consumer_group_describe": of_groups("ConsumerGroupDescribe", 1, "group_ids"),
    "share_group_describe": of_groups("ShareGroupDescribe", 1, "group_ids"),
    "streams_group_describe": of_groups("StreamsGroupDescribe", 0, "group_ids"),
    "describe_transactions": of_groups("DescribeTransactions", 0, "transactional_ids"),
}  # fmt: skip
"""By the API's name."""
