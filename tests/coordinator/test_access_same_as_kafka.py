"""ACLs: a client with one right after the other asks everything, on Apache Kafka's StandardAuthorizer and on ours."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from access_requests import REQUESTS, Asked, Scene, acl_filter, built, reduced
from kafka.protocol import admin, consumer, metadata, producer
from secured_kafka import PASSWORDS, SUPER_USERS, SecuredKafka
from topics import WAIT_S
from visitors import Door, Visitor

from loadwise.coordinator import Authorization, Coordinator, Security
from loadwise.protocol import consumer_group

pytestmark = pytest.mark.kafka

ASKER = "asker"
RESOURCES = {"TOPIC": (2, "t"), "GROUP": (3, "g"), "CLUSTER": (4, ""), "TRANSACTIONAL_ID": (5, "x")}
OPERATIONS = {
    "ALL": 2, "READ": 3, "WRITE": 4, "CREATE": 5, "DELETE": 6, "ALTER": 7, "DESCRIBE": 8, "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10, "ALTER_CONFIGS": 11, "IDEMPOTENT_WRITE": 12,
}  # fmt: skip
GRANTS = [
    "",
    *(f"TOPIC {each}" for each in ("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS",
                                   "ALTER_CONFIGS")),
    *(f"GROUP {each}" for each in ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")),
    *(f"CLUSTER {each}" for each in ("CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
                                     "ALTER_CONFIGS", "IDEMPOTENT_WRITE")),
    "TRANSACTIONAL_ID WRITE",
    "TRANSACTIONAL_ID DESCRIBE",
    "TOPIC READ, GROUP READ",
    "TOPIC DESCRIBE, GROUP DESCRIBE",
    "TOPIC READ, GROUP DELETE",
    "TOPIC READ, GROUP READ, TRANSACTIONAL_ID WRITE",
    "TOPIC WRITE, TRANSACTIONAL_ID WRITE",
    "TOPIC ALL prefixed, GROUP ALL prefixed",
    "TOPIC ALL, TOPIC READ denied, GROUP READ",
    "TOPIC READ, GROUP READ, TOPIC DESCRIBE denied",
    "TOPIC ALL from elsewhere, GROUP ALL from elsewhere",
    "TOPIC WRITE prefixed, TOPIC WRITE denied",
    "TOPIC ALL for everybody, GROUP READ for everybody",
]  # fmt: skip
"""What the client is granted; "prefixed" covers all names of the scene."""


def bindings(grant: str, prefix: str) -> list[dict[str, Any]]:
    made = []
    for each in filter(None, grant.split(", ")):
        resource, operation, *more = each.split()
        kind, short = RESOURCES[resource]
        shorts = ["g", "c"] if resource == "GROUP" else [short]
        made += [
            {
                "resource_type": kind,
                "resource_name": "kafka-cluster" if kind == 4 else prefix + ("" if "prefixed" in more else name),
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

    def ask(self, user: str, request: Any, response: Any) -> Any:
        with self.door.visitor() as visitor:
            log_in(visitor, user)
            return visitor.ask(request, response)

    def prepared(self, grant: str) -> Scene:
        names = [f"{self.prefix}{each}" for each in "to"]
        row = {"num_partitions": 1, "replication_factor": 1}
        fields = {"topics": [{"name": each, **row} for each in names], "timeout_ms": 9000}
        made = self.ask("owner", built(admin.CreateTopicsRequest, 7, fields), admin.CreateTopicsResponse)
        assert {each.error_code for each in made.topics} == {0}
        ids = {each.name[-1]: each.topic_id for each in made.topics}
        deadline = time.monotonic() + WAIT_S
        asked = {"topics": [{"name": each, "topic_id": None} for each in names], "allow_auto_topic_creation": False}
        while any(
            each.error_code
            for each in self.ask("owner", built(metadata.MetadataRequest, 12, asked), metadata.MetadataResponse).topics
        ):
            assert time.monotonic() < deadline
        for group in "gh":
            self._commit(f"{self.prefix}{group}", names, deadline)
        self._begin(f"{self.prefix}x", deadline)
        self._join(f"{self.prefix}c", names, deadline)
        wanted = bindings(grant, self.prefix)
        made = self.ask("owner", built(admin.CreateAclsRequest, 3, {"creations": wanted}), admin.CreateAclsResponse)
        assert [each.error_code for each in made.results] == [0] * len(wanted)
        while self._count() < len(wanted):
            assert time.monotonic() < deadline
        return Scene(self.prefix, ids)

    def _count(self) -> int:
        request = built(admin.DescribeAclsRequest, 3, acl_filter())
        found = self.ask("owner", request, admin.DescribeAclsResponse).resources
        mine = [
            acl for each in found for acl in each.acls
            if each.resource_name.startswith(self.prefix) or acl.principal == f"User:{ASKER}"
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
        self.ask("owner", built(admin.DeleteAclsRequest, 3, {"filters": filters}), admin.DeleteAclsResponse)
        deadline = time.monotonic() + WAIT_S
        while self._count():
            assert time.monotonic() < deadline

    def _commit(self, group: str, names: Sequence[str], deadline: float) -> None:
        row = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": None}
        fields = {
            "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None,
            "topics": [{"name": each, "partitions": [row]} for each in names],
        }  # fmt: skip
        request = built(consumer.OffsetCommitRequest, 9, fields)
        while self.ask("owner", request, consumer.OffsetCommitResponse).topics[0].partitions[0].error_code:
            assert time.monotonic() < deadline  # the coordinator is still loading

    def _begin(self, transactional_id: str, deadline: float) -> None:
        fields = {"transactional_id": transactional_id, "transaction_timeout_ms": 9000}
        find = built(metadata.FindCoordinatorRequest, 4, {"key_type": 1, "coordinator_keys": [transactional_id]})
        while self.ask("owner", find, metadata.FindCoordinatorResponse).coordinators[0].error_code:
            assert time.monotonic() < deadline
        request = built(producer.InitProducerIdRequest, 4, {**fields, "producer_id": -1, "producer_epoch": -1})
        while self.ask("owner", request, producer.InitProducerIdResponse).error_code:
            assert time.monotonic() < deadline

    def _join(self, group: str, names: Sequence[str], deadline: float) -> None:
        fields = {
            "group_id": group, "member_id": "m", "member_epoch": 0, "instance_id": None, "rack_id": None,
            "rebalance_timeout_ms": 300_000, "subscribed_topic_names": list(names), "subscribed_topic_regex": None,
            "server_assignor": None, "topic_partitions": [],
        }  # fmt: skip
        request = built(consumer_group.ConsumerGroupHeartbeatRequest, 1, fields)
        while True:
            answer = self.ask("owner", request, consumer_group.ConsumerGroupHeartbeatResponse)
            if not answer.error_code and answer.assignment is not None and answer.assignment.topic_partitions:
                return
            assert time.monotonic() < deadline

    def answer(self, asked: Asked, scene: Scene) -> Any:
        with self.door.visitor() as visitor:
            log_in(visitor, ASKER)
            request = asked.made(scene)
            if getattr(request, "acks", None) == 0:
                request.with_header(7, "client")
                visitor.socket.sendall(bytes(request.encode(header=True, framed=True)))
                # Whoever is not hung up on gets an answer to the next request.
                try:
                    return visitor.works()
                except (AssertionError, ConnectionResetError, BrokenPipeError):
                    return "hung up"
            try:
                answer = visitor.ask(request, asked.response)
            except (AssertionError, ConnectionResetError):
                return "hung up"
            return reduced(answer, asked.version, scene)


def log_in(visitor: Visitor, user: str) -> None:
    visitor.handshake("PLAIN")
    assert visitor.authenticate(f"\0{user}\0{PASSWORDS[user]}".encode())[0] == 0


@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant or "nothing")
def test_whoever_is_granted_this_gets_the_same_answers(secured: SecuredKafka, grant: str) -> None:
    prefix = f"access-{uuid.uuid4().hex[:8]}-"
    security = Security(users=PASSWORDS, authorization=Authorization(super_users=SUPER_USERS))
    with Coordinator(security=security).in_thread() as coordinator:
        theirs = Side(secured.addresses["SASL_PLAINTEXT"], prefix)
        ours = Side(coordinator.bootstrap_servers, prefix)
        sides = [(side, side.prepared(grant)) for side in (theirs, ours)]
        try:
            different = {}
            for asked in REQUESTS:
                expected, got = (side.answer(asked, scene) for side, scene in sides)
                if got != expected:
                    different[asked.name] = {"Kafka": expected, "ours": got}
            assert different == {}
        finally:
            for side, _ in sides:
                side.clean(grant)


def matched(side: Side, scene: Scene) -> Any:
    """What two members get together by one regular expression; the first may describe less than the second."""

    def beat(user: str, member: str, epoch: int) -> Any:
        joining = {"rebalance_timeout_ms": 9000, "subscribed_topic_regex": f"{scene.prefix}.*", "topic_partitions": []}
        fields = {
            "group_id": scene.name("g"), "member_id": member, "member_epoch": epoch, "instance_id": None,
            "rack_id": None, "rebalance_timeout_ms": -1, "subscribed_topic_names": None,
            "subscribed_topic_regex": None, "server_assignor": None, "topic_partitions": None,
        } | (joining if epoch == 0 else {})  # fmt: skip
        request = built(consumer_group.ConsumerGroupHeartbeatRequest, 1, fields)
        return side.ask(user, request, consumer_group.ConsumerGroupHeartbeatResponse)

    answer = beat(ASKER, "first", 0)
    deadline = time.monotonic() + WAIT_S
    while answer.error_code == 0 and not (answer.assignment and answer.assignment.topic_partitions):
        assert time.monotonic() < deadline, answer
        answer = beat(ASKER, "first", answer.member_epoch)
    errors = [answer.error_code, beat("owner", "second", 0).error_code]
    request = consumer_group.ConsumerGroupDescribeRequest(version=1, group_ids=[scene.name("g")])
    (group,) = side.ask("owner", request, consumer_group.ConsumerGroupDescribeResponse).groups
    # Which of them gets which topic is left to the assignor, which goes by topic ids.
    return errors, sorted(
        each.topic_name[-1] for member in group.members for each in member.target_assignment.topic_partitions
    )


@pytest.mark.parametrize("grant", ["TOPIC DESCRIBE, GROUP READ", "TOPIC DESCRIBE prefixed, GROUP READ"])
def test_a_regular_expression_stands_for_topics_that_may_be_described(secured: SecuredKafka, grant: str) -> None:
    prefix = f"access-{uuid.uuid4().hex[:8]}-"
    security = Security(users=PASSWORDS, authorization=Authorization(super_users=SUPER_USERS))
    with Coordinator(security=security).in_thread() as coordinator:
        sides = [Side(secured.addresses["SASL_PLAINTEXT"], prefix), Side(coordinator.bootstrap_servers, prefix)]
        try:
            expected, got = [matched(side, side.prepared(grant)) for side in sides]
            assert got == expected
        finally:
            for side in sides:
                side.clean(grant)


def acl(**changes: Any) -> dict[str, Any]:
    return {
        "resource_type": 2, "resource_name": "acls-t", "resource_pattern_type": 3, "principal": "User:nobody",
        "host": "*", "operation": 3, "permission_type": 3, **changes,
    }  # fmt: skip


CREATED = [
    [acl(), acl(), acl(operation=4), acl(resource_name="acls-", resource_pattern_type=4)],
    [acl(resource_name="")], [acl(resource_type=4, resource_name="other")],
    [acl(resource_type=4, resource_name="kafka-cluster", operation=7), acl(resource_type=3, resource_name="acls-g")],
    [acl(principal="nobody")], [acl(principal="")], [acl(principal="User:")], [acl(host="")],
    [acl(resource_type=7, resource_name="User:x", operation=13), acl(operation=9), acl(resource_type=9)],
    *([acl(**{field: value})] for field, value in (
        ("resource_type", 0), ("resource_type", 1), ("resource_pattern_type", 0), ("resource_pattern_type", 1),
        ("resource_pattern_type", 2), ("operation", 0), ("operation", 1), ("operation", 15), ("operation", 16),
        ("permission_type", 0), ("permission_type", 1), ("permission_type", 2),
    )),
    [acl(resource_name="*"), acl(resource_name="*", resource_pattern_type=4)],
]  # fmt: skip


def wanted(**changes: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
        "principal_filter": "User:nobody", "host_filter": None, "operation": 1, "permission_type": 1, **changes,
    }  # fmt: skip


FILTERS = [
    wanted(), wanted(resource_type_filter=2), wanted(resource_name_filter="acls-t"),
    wanted(resource_name_filter="acls-t", pattern_type_filter=2), wanted(pattern_type_filter=4),
    wanted(resource_name_filter="acls-", pattern_type_filter=4), wanted(operation=4), wanted(permission_type=2),
    wanted(principal_filter="User:nobody", host_filter="*", operation=3, permission_type=3, resource_type_filter=2),
    wanted(resource_type_filter=0), wanted(pattern_type_filter=0), wanted(operation=0), wanted(permission_type=0),
    wanted(resource_type_filter=9), wanted(resource_name_filter=""),
]  # fmt: skip


def hung_up_or(side: Side, request: Any, response: Any) -> Any:
    try:
        return side.ask("owner", request, response)
    except (AssertionError, ConnectionResetError):
        return None


def created(side: Side, rows: Sequence[dict[str, Any]]) -> Any:
    answer = hung_up_or(side, built(admin.CreateAclsRequest, 3, {"creations": rows}), admin.CreateAclsResponse)
    return answer and [(each.error_code, each.error_message) for each in answer.results]


def described(side: Side, fields: dict[str, Any]) -> Any:
    answer = hung_up_or(side, built(admin.DescribeAclsRequest, 3, fields), admin.DescribeAclsResponse)
    return answer and (
        answer.error_code,
        sorted(
            (each.resource_type, each.resource_name, each.pattern_type, *row)
            for each in answer.resources
            for row in ((one.principal, one.host, one.operation, one.permission_type) for one in each.acls)
        ),
    )


def deleted(side: Side, *filters: dict[str, Any]) -> Any:
    answer = hung_up_or(side, built(admin.DeleteAclsRequest, 3, {"filters": filters}), admin.DeleteAclsResponse)
    return answer and [
        (
            each.error_code,
            sorted(
                (row.error_code, row.resource_type, row.resource_name, row.pattern_type, row.operation)
                for row in each.matching_acls
            ),
        )
        for each in answer.filter_results
    ]


def test_acls_are_administered_as_on_kafka(secured: SecuredKafka) -> None:
    security = Security(users=PASSWORDS, authorization=Authorization(super_users=SUPER_USERS))
    with Coordinator(security=security).in_thread() as coordinator:
        theirs, ours = (Side(each, "") for each in (secured.addresses["SASL_PLAINTEXT"], coordinator.bootstrap_servers))
        answers = [(rows, created(theirs, rows), created(ours, rows)) for rows in CREATED]
        deadline = time.monotonic() + WAIT_S
        while described(theirs, wanted()) != described(ours, wanted()) and time.monotonic() < deadline:
            time.sleep(0.05)  # between two looks
        answers += [(fields, described(theirs, fields), described(ours, fields)) for fields in FILTERS]
        answers += [
            (filters, deleted(theirs, *filters), deleted(ours, *filters))
            for filters in (
                [FILTERS[6], FILTERS[9]],
                [FILTERS[13]],
                [FILTERS[6], FILTERS[3]],
                [FILTERS[0]],
                [FILTERS[0]],
            )
        ]
        assert [(asked, got) for asked, _, got in answers] == [(asked, expected) for asked, expected, _ in answers]
