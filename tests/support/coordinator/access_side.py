"""A broker with an authorizer, and its owner, who makes what a client with few rights asks about."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from access_requests import COMMITTED, Asked, Scene, acl_filter, errors_of, reduced, streams_beat
from client_messages import request_bytes
from secured_kafka import PASSWORDS
from topics import WAIT_S, until
from visitors import Door, Visitor

ASKER = "asker"
"""Other tests give it rights of their own to other resources."""
CLUSTER = 4
RESOURCES = {"TOPIC": (2, "t"), "GROUP": (3, "g"), "CLUSTER": (4, ""), "TRANSACTIONAL_ID": (5, "x")}
OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12,
}  # fmt: skip


def bindings(grant: str, prefix: str) -> list[dict[str, Any]]:
    made = []
    for each in filter(None, grant.split(", ")):
        resource, operation, *more = each.split()
        kind, short = RESOURCES[resource]
        shorts = ["g", "c", "s", "e", "k"] if resource == "GROUP" else [short]
        made += [
            {
                "resource_type": kind,
                "resource_name": "kafka-cluster" if kind == CLUSTER else prefix + ("" if "prefixed" in more else name),
                "resource_pattern_type": 4 if "prefixed" in more else 3,
                "principal": "User:*" if "everybody" in more else f"User:{ASKER}",
                "host": "10.1.2.3" if "elsewhere" in more else "*",
                "operation": OPERATIONS[operation],
                "permission_type": 2 if "denied" in more else 3,
            }
            for name in (shorts[:1] if "prefixed" in more else shorts)
        ]
    return made


class Side:
    """One broker, with its owner, who makes what the client asks about."""

    def __init__(self, address: str, prefix: str) -> None:
        self.door = Door(address)
        self.prefix = prefix

    def ask(self, user: str, api: str, /, version: int, **values: Any) -> Any:
        with self.door.visitor() as visitor:
            log_in(visitor, user)
            return visitor.ask(api, version, **values)

    def prepared(self, grant: str) -> Scene:
        names = [f"{self.prefix}{each}" for each in "to"]
        rows = [{"name": each, "num_partitions": 1, "replication_factor": 1} for each in names]
        made = self.ask("owner", "CreateTopics", 7, topics=rows, timeout_ms=9000)
        assert {each.error_code for each in made.topics} == {0}
        ids = {each.name[-1]: each.topic_id for each in made.topics}
        deadline = time.monotonic() + WAIT_S
        asked = {"topics": [{"name": each} for each in names], "allow_auto_topic_creation": False}
        while any(each.error_code for each in self.ask("owner", "Metadata", 12, **asked).topics):
            assert time.monotonic() < deadline
        for group in "gh":
            self._commit(f"{self.prefix}{group}", names, deadline)
        self._begin(f"{self.prefix}x", deadline)
        self._join(f"{self.prefix}c", names, deadline)
        for group in "se":
            self._share(f"{self.prefix}{group}", names, deadline)
        self._share_beat(f"{self.prefix}e", -1)
        body = streams_beat(f"{self.prefix}k", "m", 0, *names)
        while not self.ask("owner", "StreamsGroupHeartbeat", 0, **body).active_tasks:
            assert time.monotonic() < deadline
        wanted = bindings(grant, self.prefix)
        made = self.ask("owner", "CreateAcls", 3, creations=wanted)
        assert [each.error_code for each in made.results] == [0] * len(wanted)
        while self._count() < len(wanted):
            assert time.monotonic() < deadline
        return Scene(self.prefix, ids)

    def _count(self) -> int:
        found = self.ask("owner", "DescribeAcls", 3, **acl_filter()).resources
        mine = [
            acl for each in found for acl in each.acls
            if each.resource_name.startswith(self.prefix)
            or (each.resource_type == CLUSTER and acl.principal == f"User:{ASKER}")
        ]  # fmt: skip
        return len(mine)

    def clean(self, grant: str) -> None:
        filters = [
            {
                "resource_type_filter": each["resource_type"], "resource_name_filter": each["resource_name"],
                "pattern_type_filter": each["resource_pattern_type"], "principal_filter": each["principal"],
                "host_filter": None, "operation": 1, "permission_type": 1,
            }
            for each in bindings(grant, self.prefix)
        ]  # fmt: skip
        self.ask("owner", "DeleteAcls", 3, filters=filters)
        until(lambda: not self._count())

    def _commit(self, group: str, names: Sequence[str], deadline: float) -> None:
        fields = {
            "group_id": group, "member_id": "", "topics": [{"name": each, "partitions": COMMITTED} for each in names],
        }  # fmt: skip
        while self.ask("owner", "OffsetCommit", 9, **fields).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline  # the coordinator is still loading

    def _begin(self, transactional_id: str, deadline: float) -> None:
        fields = {"transactional_id": transactional_id, "transaction_timeout_ms": 9000}
        find = {"key_type": 1, "coordinator_keys": [transactional_id]}
        while self.ask("owner", "FindCoordinator", 4, **find).coordinators[0].error_code:
            assert time.monotonic() < deadline
        while self.ask("owner", "InitProducerId", 4, **fields).error_code:
            assert time.monotonic() < deadline

    def _join(self, group: str, names: Sequence[str], deadline: float) -> None:
        fields = {
            "group_id": group, "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 300_000,
            "subscribed_topic_names": list(names), "topic_partitions": [],
        }  # fmt: skip
        while True:
            answer = self.ask("owner", "ConsumerGroupHeartbeat", 1, **fields)
            if not answer.error_code and answer.assignment is not None and answer.assignment.topic_partitions:
                return
            assert time.monotonic() < deadline

    def _share_beat(self, group: str, epoch: int, names: Sequence[str] | None = None) -> Any:
        fields = {"group_id": group, "member_id": "m", "member_epoch": epoch, "subscribed_topic_names": names}
        return self.ask("owner", "ShareGroupHeartbeat", 1, **fields)

    def _share(self, group: str, names: Sequence[str], deadline: float) -> None:
        answer = self._share_beat(group, 0, names)
        while answer.assignment is None or len(answer.assignment.topic_partitions) < len(names):
            assert time.monotonic() < deadline
            answer = self._share_beat(group, 0, names)

    def answer(self, asked: Asked, scene: Scene) -> Any:
        with self.door.visitor() as visitor:
            log_in(visitor, ASKER)
            request = asked.made(scene)
            if getattr(request, "acks", None) == 0:
                visitor.socket.sendall(request_bytes(request, framed=True))
                # Whoever is not hung up on gets an answer to the next request.
                try:
                    return visitor.works()
                except (AssertionError, ConnectionResetError, BrokenPipeError):
                    return "hung up"
            try:
                answer = visitor.exchange(request)
            except (AssertionError, ConnectionResetError):
                return "hung up"
            values = reduced(answer, asked.version, scene)
            return errors_of(values) if asked.only_errors else values


def log_in(visitor: Visitor, user: str) -> None:
    visitor.handshake("PLAIN")
    assert visitor.authenticate(f"\0{user}\0{PASSWORDS[user]}".encode())[0] == 0
