"""Who has not logged in gets nothing; what Kafka answers at each step is compared in test_login_same_as_kafka.py."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from own_log import own_log
from visitors import Door

from loadwise.coordinator import BadSecurityError, Coordinator, Security
from loadwise.protocol.error_codes import ErrorCode

SECRET = "a-secret-not-to-be-seen"


@pytest.fixture
def door() -> Iterator[Door]:
    security = Security(users={"orders": SECRET})
    with Coordinator(security=security).in_thread() as coordinator:
        yield Door(coordinator.bootstrap_servers)


def test_nothing_is_answered_before_the_login(door: Door) -> None:
    for step in ("connected", "told versions"):
        with door.visitor() as visitor:
            if step == "told versions":
                assert visitor.versions() == ErrorCode.NONE
            visitor.send(bytes.fromhex("0000000300000007ffff"))
            assert visitor.is_hung_up_on()
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        assert visitor.works() == ErrorCode.ILLEGAL_SASL_STATE
        assert visitor.is_hung_up_on()


def test_a_request_without_an_answer_ends_a_login_quietly(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        visitor.send(bytes.fromhex("0000000300000007ffffffff00000000000000000000"))  # Produce with acks=0
        assert visitor.is_hung_up_on()
    assert [each.message for each in own_log(caplog) if each.levelno >= logging.ERROR] == []


def test_a_login_is_one_connection_s(door: Door) -> None:
    with door.visitor() as first, door.visitor() as second:
        first.handshake("PLAIN")
        assert first.authenticate(f"\0orders\0{SECRET}".encode())[0] == ErrorCode.NONE
        assert first.works() == ErrorCode.UNKNOWN_MEMBER_ID
        second.handshake("PLAIN")
        assert second.authenticate(b"\0orders\0another")[0] == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert second.is_hung_up_on()


def test_only_the_mechanisms_that_are_offered() -> None:
    security = Security(users={"orders": SECRET}, mechanisms=["SCRAM-SHA-512"])
    with Coordinator(security=security).in_thread() as coordinator, Door(coordinator.bootstrap_servers).visitor() as it:
        assert it.handshake("PLAIN") == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["SCRAM-SHA-512"])
        assert it.is_hung_up_on()


def test_mechanisms_that_are_one_text_are_refused() -> None:
    with pytest.raises(BadSecurityError, match=r"mechanisms is 'PLAIN'; it must be a list .*\['PLAIN'\]"):
        Security(users={"orders": SECRET}, mechanisms="PLAIN")


def test_what_cannot_be_is_refused_and_secrets_stay_hidden() -> None:
    assert SECRET not in repr(Security(users={"orders": SECRET}))
    for wrong in (
        {"mechanisms": ["GSSAPI"]}, {"mechanisms": []}, {"protocol": "TLS"}, {"users": {"": SECRET}},
        {"users": {"orders": ""}},
    ):  # fmt: skip
        with pytest.raises(BadSecurityError) as refused:
            Security(**wrong)  # type: ignore[arg-type]
        assert SECRET not in str(refused.value)
