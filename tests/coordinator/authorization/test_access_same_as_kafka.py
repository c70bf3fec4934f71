"""ACLs: a client with one right after the other asks everything, on Apache Kafka's StandardAuthorizer and on ours."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from access_requests import GROUP_REQUESTS, REQUESTS, Scene, acl_filter
from access_side import ASKER, Side
from secured_kafka import PASSWORDS, SUPER_USERS, SecuredKafka
from topics import WAIT_S

from loadwise.coordinator import Authorization, Coordinator, Security

pytestmark = pytest.mark.kafka

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
            for asked in [*GROUP_REQUESTS, *REQUESTS]:
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
        who = {"group_id": scene.name("g"), "member_id": member, "member_epoch": epoch}
        return side.ask(user, "ConsumerGroupHeartbeat", 1, **who, **(joining if epoch == 0 else {}))

    answer = beat(ASKER, "first", 0)
    deadline = time.monotonic() + WAIT_S
    while answer.error_code == 0 and not (answer.assignment and answer.assignment.topic_partitions):
        assert time.monotonic() < deadline, answer
        answer = beat(ASKER, "first", answer.member_epoch)
    errors = [answer.error_code, beat("owner", "second", 0).error_code]
    (group,) = side.ask("owner", "ConsumerGroupDescribe", 1, group_ids=[scene.name("g")]).groups
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
    return acl_filter(principal="User:nobody") | changes


FILTERS = [
    wanted(), wanted(resource_type_filter=2), wanted(resource_name_filter="acls-t"),
    wanted(resource_name_filter="acls-t", pattern_type_filter=2), wanted(pattern_type_filter=4),
    wanted(resource_name_filter="acls-", pattern_type_filter=4), wanted(operation=4), wanted(permission_type=2),
    wanted(principal_filter="User:nobody", host_filter="*", operation=3, permission_type=3, resource_type_filter=2),
    wanted(resource_type_filter=0), wanted(pattern_type_filter=0), wanted(operation=0), wanted(permission_type=0),
    wanted(resource_type_filter=9), wanted(resource_name_filter=""),
]  # fmt: skip


def hung_up_or(side: Side, api: str, **values: Any) -> Any:
    try:
        return side.ask("owner", api, 3, **values)
    except (AssertionError, ConnectionResetError):
        return None


def created(side: Side, rows: Sequence[dict[str, Any]]) -> Any:
    answer = hung_up_or(side, "CreateAcls", creations=rows)
    return answer and [(each.error_code, each.error_message) for each in answer.results]


def described(side: Side, fields: dict[str, Any]) -> Any:
    answer = hung_up_or(side, "DescribeAcls", **fields)
    return answer and (
        answer.error_code,
        sorted(
            (each.resource_type, each.resource_name, each.pattern_type, *row)
            for each in answer.resources
            for row in ((one.principal, one.host, one.operation, one.permission_type) for one in each.acls)
        ),
    )


def deleted(side: Side, *filters: dict[str, Any]) -> Any:
    answer = hung_up_or(side, "DeleteAcls", filters=list(filters))
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
