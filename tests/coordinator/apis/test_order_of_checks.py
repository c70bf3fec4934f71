"""Requests with wrong values get the error that Apache Kafka answers, whose checks come in an order of their own.

Each request with one or two wrong values is compared with Kafka, and its error with what Kafka answered
(`tests/golden/make_order_of_checks.py`). What users met is also written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from doubled_requests import Doubler, Values, errors_in
from faulty_requests import FAULTY, NO_ID, checks, faults
from topics import WAIT_S

from loadwise.coordinator import ThreadedCoordinator
from loadwise.coordinator.routing.services import services
from loadwise.protocol.error_codes import ErrorCode

ELSEWHERE = {
    "ApiVersions": "test_administration_same_as_kafka",
    "CreateAcls": "test_access_same_as_kafka",
    "CreateDelegationToken": "there are no delegation tokens",
    "DeleteAcls": "test_access_same_as_kafka",
    "DescribeAcls": "test_access_same_as_kafka",
    "DescribeDelegationToken": "there are no delegation tokens",
    "ExpireDelegationToken": "there are no delegation tokens",
    "RenewDelegationToken": "there are no delegation tokens",
    "SaslAuthenticate": "test_login_same_as_kafka",
    "SaslHandshake": "test_login_same_as_kafka",
    "ShareAcknowledge": "test_share_same_as_kafka",
    "ShareFetch": "test_share_same_as_kafka",
    "StreamsGroupHeartbeat": "test_streams_same_as_kafka",
}


def test_every_api_is_tried() -> None:
    tried = {"".join(part.capitalize() for part in name.split("_")) for name in FAULTY}
    assert tried | ELSEWHERE.keys() == {service.api.name for service in services().values()}
    assert not tried & ELSEWHERE.keys()


@pytest.mark.kafka
@pytest.mark.timeout(10 * WAIT_S)
@pytest.mark.parametrize("name", FAULTY)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, name: str) -> None:
    with closing(Doubler(apache_kafka)) as theirs, closing(Doubler(coordinator.bootstrap_servers)) as ours:
        requests = zip(faults(FAULTY[name](theirs)), faults(FAULTY[name](ours)), strict=True)
        for (wrong, request), (_, same) in requests:
            assert ours.answer(same) == theirs.answer(request), wrong


GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "order-of-checks-4.3.1.txt"


@pytest.mark.parametrize("name", FAULTY)
def test_the_error_of_two_wrong_values_is_the_one_of_kafka(coordinator: ThreadedCoordinator, name: str) -> None:
    expected = [line for line in GOLDEN.read_text().splitlines() if line.partition(":")[0].split()[0] == name]
    with closing(Doubler(coordinator.bootstrap_servers)) as ours:
        assert list(checks(ours, name)) == expected


# ---- on both brokers, ours in the default tier ----


@pytest.fixture
def session(broker: str) -> Iterator[Doubler]:
    with closing(Doubler(broker)) as opened:
        yield opened


def errors(session: Doubler, api: str, /, **wrong: Any) -> set[ErrorCode]:
    """The errors of one request in `FAULTY` with these wrong values."""
    faulty = FAULTY[api](session)
    version = wrong.pop("version", faulty.version)
    answer = session.answer((faulty.api, version, faulty.made(**wrong)))
    return {ErrorCode(code) for code in errors_in(answer) if code}


WRONG_SETTINGS: dict[str, Values] = {
    "config": {"config": ("retention.ms", "abc")},
    "null config": {"config": ("retention.ms", None)},
    "replication factor": {"factor": 0},
    "more replicas than brokers": {"factor": 3},
    "partitions": {"count": 0},
    "unknown broker": {"assignments": {0: [9]}},
    "nothing": {},
}


@pytest.mark.parametrize("wrong", WRONG_SETTINGS)
def test_the_name_of_a_new_topic_is_checked_before_its_settings(session: Doubler, wrong: str) -> None:
    settings = WRONG_SETTINGS[wrong]
    assert errors(session, "create_topics", name=session.topic, **settings) == {ErrorCode.TOPIC_ALREADY_EXISTS}
    assert errors(session, "create_topics", name="a/b", **settings) == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert errors(session, "create_topics", name="__cluster_metadata", **settings) == {ErrorCode.INVALID_REQUEST}


def test_the_configs_of_a_new_topic_are_checked_before_its_replicas(session: Doubler) -> None:
    for layout in ({"factor": 0}, {"assignments": {0: [9]}}):
        assert errors(session, "create_topics", config=("nonsense", "1"), **layout) == {ErrorCode.INVALID_CONFIG}


def test_an_unknown_type_of_election_is_refused(session: Doubler) -> None:
    for kind in (5, -1):
        assert errors(session, "elect_leaders", kind=kind) == {ErrorCode.INVALID_REQUEST}
        assert errors(session, "elect_leaders", kind=kind, name="missing") == {ErrorCode.INVALID_REQUEST}
    assert errors(session, "elect_leaders", kind=1) == {ErrorCode.ELECTION_NOT_NEEDED}


def test_the_first_wrong_component_of_a_quota_filter_counts(session: Doubler) -> None:
    invalid, unknown = ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION
    assert errors(session, "describe_client_quotas", kind="") == {invalid}
    assert errors(session, "describe_client_quotas", kind="planet", match=(9, None)) == {unknown}
    planet = {"entity_type": "planet", "match_type": 0, "match": "x"}
    for match in ((0, None), (1, "x"), (2, "x"), (9, None)):
        assert errors(session, "describe_client_quotas", match=match) == {invalid}
        assert errors(session, "describe_client_quotas", match=match, more=[planet]) == {invalid}
    assert errors(session, "describe_client_quotas", more=[planet]) == {unknown}


def test_the_last_name_of_a_type_counts_in_the_entity_of_a_quota(session: Doubler) -> None:
    twice = [("user", ""), ("user", session.name)]
    assert errors(session, "alter_client_quotas", entity=twice) == set()
    assert errors(session, "alter_client_quotas", entity=twice[::-1]) == {ErrorCode.INVALID_REQUEST}


def test_an_empty_salted_password_fails_after_all_other_checks(session: Doubler) -> None:
    failed = {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert errors(session, "alter_user_scram_credentials", password=b"") == failed
    few = errors(session, "alter_user_scram_credentials", password=b"", iterations=1)
    assert few == {ErrorCode.UNACCEPTABLE_CREDENTIAL}
    (user,) = session.ask("DescribeUserScramCredentials", 0, users=[{"name": session.name}]).results
    assert user.error_code == ErrorCode.RESOURCE_NOT_FOUND


def test_metadata_of_names_beside_ids_is_left_out(session: Doubler) -> None:
    by_id, unknown = {"name": None, "topic_id": session.topic_id}, {"name": None, "topic_id": UUID(int=77)}

    def answered(*topics: Values, version: int = 12) -> list[tuple[str | None, int]]:
        rows = [dict(each) for each in topics]
        found = session.ask("Metadata", version, topics=rows, allow_auto_topic_creation=True).topics
        return sorted(((each.name, each.error_code) for each in found), key=str)

    new = {"name": session.name, "topic_id": NO_ID}
    assert answered(new, by_id) == [(session.topic, 0)]
    assert answered(new, unknown) == [(None, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert errors(session, "metadata", name=session.name) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, (
        "it was not created"
    )
    for version in (10, 11):  # these have the field, and do not use it yet
        assert {error for _, error in answered(by_id, version=version)} == {ErrorCode.INVALID_REQUEST}


def test_a_topic_without_name_and_id_is_not_deleted(session: Doubler) -> None:
    assert errors(session, "delete_topics", name=None) == {ErrorCode.INVALID_REQUEST}
    assert errors(session, "delete_topics", name=None, topic_id=UUID(int=77)) == {ErrorCode.UNKNOWN_TOPIC_ID}


def test_a_time_that_a_version_does_not_know_is_refused_before_an_unknown_topic(session: Doubler) -> None:
    unknown, unsupported = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, {ErrorCode.UNSUPPORTED_VERSION}
    for timestamp, first in ((-3, 7), (-4, 8), (-5, 9), (-6, 11)):
        wrong = {"name": "missing", "timestamp": timestamp}
        assert errors(session, "list_offsets", version=first - 1, **wrong) == unsupported
        assert errors(session, "list_offsets", version=first, **wrong) == unknown
        assert errors(session, "list_offsets", version=first - 1, times=2, **wrong) == {ErrorCode.INVALID_REQUEST}


def test_offsets_of_an_unknown_group_are_fetched_by_any_member(session: Doubler) -> None:
    for member, epoch in ((None, 0), (None, -1), ("m", 5)):
        assert errors(session, "offset_fetch", group=session.missing, member=member, epoch=epoch) == set()


WRONG_CONFIGS: dict[str, tuple[Values, ErrorCode]] = {
    "an unknown config": ({"name": "nonsense"}, ErrorCode.INVALID_CONFIG),
    "a null value": ({"value": None}, ErrorCode.INVALID_REQUEST),
    "an unknown operation": ({"operation": 9}, ErrorCode.UNKNOWN_SERVER_ERROR),
    "a list operation": ({"operation": 2}, ErrorCode.INVALID_CONFIG),
    "nothing": ({}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
}


@pytest.mark.parametrize("what", WRONG_CONFIGS)
def test_configs_are_checked_before_their_topic(session: Doubler, what: str) -> None:
    wrong, error = WRONG_CONFIGS[what]
    assert errors(session, "incremental_alter_configs", resource=(2, "missing"), **wrong) == {error}


def test_no_keys_describe_all_configs(session: Doubler) -> None:
    def described(keys: list[str] | None) -> list[str]:
        row = {"resource_type": 2, "resource_name": session.topic, "configuration_keys": keys}
        (found,) = session.ask("DescribeConfigs", 4, resources=[row]).results
        return sorted(each.name for each in found.configs)

    assert described([]) == described(None)
    assert described(["retention.ms"]) == ["retention.ms"]


WRONG_PAIRS: dict[str, tuple[str, Callable[[Doubler], Values], ErrorCode]] = {
    "two batches before acks": (
        "produce", lambda broker: {"acks": 2, "data": FAULTY["produce"](broker).wrong["data"][-1]},
        ErrorCode.INVALID_RECORD,
    ),
    "a topic's name before its partitions": (
        "describe_producers", lambda _: {"name": "a/b", "number": 99}, ErrorCode.INVALID_TOPIC_EXCEPTION,
    ),
    "a cursor's topic before topics": (
        "describe_topic_partitions",
        lambda broker: {"name": "missing", "cursor": {"topic_name": broker.topic, "partition_index": 0}},
        ErrorCode.INVALID_REQUEST,
    ),
    "an empty group before what it may do": (
        "offset_delete", lambda _: {"group": "", "name": "missing"}, ErrorCode.INVALID_GROUP_ID,
    ),
    "a producer before the metadata": (
        "txn_offset_commit", lambda _: {"producer_id": 2**40, "text": "x" * 4097},
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ),
    "a group before the metadata": (
        "txn_offset_commit", lambda _: {"generation": 5, "text": "x" * 4097}, ErrorCode.UNKNOWN_MEMBER_ID,
    ),
}  # fmt: skip


@pytest.mark.parametrize("order", WRONG_PAIRS)
def test_one_check_comes_before_another(session: Doubler, order: str) -> None:
    name, wrong, error = WRONG_PAIRS[order]
    assert errors(session, name, **wrong(session)) == {error}
