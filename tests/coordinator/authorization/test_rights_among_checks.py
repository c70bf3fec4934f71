"""Wrong requests of a client without rights: the error is that of Kafka, which checks rights among other things."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from access_side import log_in
from doubled_requests import Doubler
from faulty_requests import FAULTY, faults
from secured_kafka import PASSWORDS, SUPER_USERS, SecuredKafka
from topics import WAIT_S
from visitors import Visitor
from wires import Wire, allow, only

from loadwise.coordinator import Authorization, Coordinator, Security
from loadwise.protocol.error_codes import ErrorCode


class _Owner(Visitor):
    def __init__(self, address: str) -> None:
        super().__init__(address)
        log_in(self, "owner")


class Stranger(Doubler, _Owner):
    """A session whose topic and group an owner has made, and which then goes on without any right."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self._address = address

    def become_stranger(self) -> None:
        stranger = Visitor(self._address)
        log_in(stranger, "stranger")
        self.socket.close()
        self.socket = stranger.socket


@pytest.mark.kafka
@pytest.mark.timeout(10 * WAIT_S)
@pytest.mark.parametrize("name", FAULTY)
def test_ours_answers_as_kafka_does(secured: SecuredKafka, name: str) -> None:
    security = Security(users=PASSWORDS, authorization=Authorization(super_users=SUPER_USERS))
    with (
        Coordinator(security=security).in_thread() as coordinator,
        closing(Stranger(secured.addresses["SASL_PLAINTEXT"])) as theirs,
        closing(Stranger(coordinator.bootstrap_servers)) as ours,
    ):
        expected, asked = (list(faults(FAULTY[name](each))) for each in (theirs, ours))
        for session in (theirs, ours):
            session.become_stranger()
        for (wrong, request), (_, same) in zip(expected, asked, strict=True):
            assert ours.answer(same) == theirs.answer(request), wrong


# ---- without Kafka ----


@pytest.fixture
def wire() -> Wire:
    """A broker whose clients have a right, and none of those that the tests need."""
    made = Wire()
    allow(made, "TOPIC READ other")
    return made


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["t", "t"], ErrorCode.INVALID_REQUEST),
        (["__cluster_metadata"], ErrorCode.INVALID_REQUEST),
        (["t"], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (["a/b"], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_new_topics_named_twice_are_refused_before_rights_are_checked(
    wire: Wire, names: list[str], error: ErrorCode
) -> None:
    topics = [{"name": each, "num_partitions": 1, "replication_factor": 0} for each in names]
    answer = wire.ask("CreateTopics", 7, topics=topics, timeout_ms=1, validate_only=False)
    assert only(answer.topics).error_code == error


@pytest.mark.parametrize(
    ("kind", "config", "error"),
    [
        (2, {}, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (2, {"value": None}, ErrorCode.INVALID_REQUEST),
        (2, {"name": "nonsense"}, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (4, {"name": "log.retention.ms"}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (4, {"name": "broker.id"}, ErrorCode.INVALID_REQUEST),
        (8, {"name": "root", "value": "INFO"}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (9, {}, ErrorCode.INVALID_REQUEST),
        (32, {}, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ],
)
def test_nulls_and_a_brokers_own_configs_are_checked_before_rights(
    wire: Wire, kind: int, config: dict[str, Any], error: ErrorCode
) -> None:
    configs = [{"name": "retention.ms", "config_operation": 0, "value": "5", **config}]
    row = {"resource_type": kind, "resource_name": "1" if kind in (4, 8) else "t", "configs": configs}
    answer = wire.ask("IncrementalAlterConfigs", 1, resources=[row], validate_only=False)
    assert only(answer.responses).error_code == error


def test_other_checks_before_those_of_rights(wire: Wire) -> None:
    producers = wire.ask("DescribeProducers", 0, topics=[{"name": "a/b", "partition_indexes": [0]}])
    assert only(only(producers.topics).partitions).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    fields = {"generation_id": 1, "member_id": "m", "protocol_type": None, "protocol_name": "range", "assignments": []}
    assert wire.ask("SyncGroup", 5, group_id="g", **fields).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    deleted = wire.ask("DeleteGroups", 2, groups_names=["g", "g"]).results
    assert only(deleted).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    row = {"resource_type": 9, "resource_name": "x", "configuration_keys": None}
    assert only(wire.ask("DescribeConfigs", 4, resources=[row]).results).error_code == ErrorCode.INVALID_REQUEST
