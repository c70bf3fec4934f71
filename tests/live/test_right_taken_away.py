"""A group whose members may not read its offsets any more, by ACLs of both brokers, and then may again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from figures import Figure
from live_group import LiveGroup
from live_scenes import CLIENTS, DRIFT_RATES, requests
from secured_kafka import PASSWORDS, SecuredKafka
from topics import WAIT_S

from loadwise.coordinator import Acl, Authorization, Coordinator, Security

pytestmark = [pytest.mark.kafka, pytest.mark.live]

UNREAD_S = 10


class Guarded(NamedTuple):
    """A broker with an authorizer."""

    servers: str
    """Where the test may do everything."""
    principal: str
    """Who the members are."""
    settings: dict[str, Any]
    """With which the members come as that."""


@pytest.fixture(params=["loadwise", "apache"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    if request.param == "apache":
        secured: SecuredKafka = request.getfixturevalue("secured")
        login = {
            "bootstrap_servers": secured.addresses["SASL_PLAINTEXT"],
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "asker",
            "sasl_plain_password": PASSWORDS["asker"],
        }
        yield Guarded(secured.open_address, "User:asker", login)
        return
    # No client logs in, so the test and the members are one principal to the broker, which may do everything at first.
    kinds = {"TOPIC": "*", "GROUP": "*", "CLUSTER": "kafka-cluster"}
    everything = [Acl.of("User:ANONYMOUS", "ALL", kind, name) for kind, name in kinds.items()]
    security = Security(protocol="PLAINTEXT", authorization=Authorization(acls=everything))
    with Coordinator(security=security).in_thread() as coordinator:
        yield Guarded(coordinator.bootstrap_servers, "User:ANONYMOUS", {})


def test_a_group_goes_on_without_the_right_to_read_its_offsets_and_is_balanced_once_it_has_it_again(guarded, record):
    """Who may READ a group is a member of it. The leader's readings need DESCRIBE, which ALLOW READ brings."""
    name = f"right-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": guarded.servers, "log_level": 0})
    about = (name, ResourcePatternType.LITERAL, guarded.principal, "*")
    allowed = [
        AclBinding(kind, *about, AclOperation.READ, AclPermissionType.ALLOW)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    ]
    denied = ResourceType.GROUP, *about, AclOperation.DESCRIBE, AclPermissionType.DENY

    def add(*rules):
        for made in admin.create_acls(list(rules), request_timeout=WAIT_S).values():
            made.result(WAIT_S)

    add(*allowed)
    with LiveGroup(guarded.servers, name, name, rates=DRIFT_RATES, tick_s=0.1, **guarded.settings) as group:

        def unread():
            return [line for member in group.members for line in member.log if "cannot be read" in line]

        for client in CLIENTS["mixed"]:
            group.join(client)
        group.wait_until_at_rest(3, why="joining")
        group.wait_until(lambda: group.lag <= 900, why="catching up")
        group.wait_until(lambda: any(member.leads for member in group.alive), why="a leader")
        generation, before = group.generation, group.processed
        add(AclBinding(*denied))
        group.wait_until(unread, why="a warning")
        unlucky = max(group.alive, key=lambda member: len(member.owned))
        hot = group.overload(unlucky, 1350)
        # The others get no records now, so only this member shows that the group goes on.
        group.wait_until(lambda: group.processed - before >= UNREAD_S * 900, why="going on")
        group.wait_until(lambda: group.lag >= 450 * UNREAD_S, why="falling behind")
        assert (group.generation, group.load_rebalances(), len(unread())) == (generation, 0, 1)
        assert "GroupAuthorizationFailed" in unread()[0]
        [taken_back] = admin.delete_acls([AclBindingFilter(*denied)], request_timeout=WAIT_S).values()
        taken_back.result(WAIT_S)
        began = time.monotonic()
        group.wait_until(lambda: not hot <= set(unlucky.owned) and group.settled(3), why="relief")
        relieved_s = time.monotonic() - began
        group.wait_until(lambda: group.lag <= 900, why="catching up")
        assert len(unread()) == 1
        caught_up_s = time.monotonic() - began
    record([Figure("relief, s", relieved_s, 60), Figure("lag below 900, s", caught_up_s, 120), requests(group)])
