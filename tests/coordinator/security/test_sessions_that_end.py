"""Tokens, and logins that hold for a time; Kafka's answers are compared in test_login_same_as_kafka.py."""

from __future__ import annotations

import contextlib
import time
from collections import Counter

import pytest
from confluent_kafka import KafkaError, Producer
from hypothesis import given
from hypothesis import strategies as st
from oauth_tokens import first_message, jws
from topics import WAIT_S
from visitors import Door, Visitor

from loadwise.coordinator import BadSecurityError, Coordinator, OAuthToken, Security
from loadwise.coordinator.calls.call import Call, Response
from loadwise.coordinator.errors import UnansweredLoginError
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.security import sasl_handshake_17 as sasl_handshake
from loadwise.coordinator.security.tokens import unsecured
from loadwise.protocol.error_codes import ErrorCode

NOW_MS = 1_000_000
GOOD = {"sub": "orders", "exp": 1600}
NOT_VALID = [
    jws({**GOOD, "exp": 1000}), jws({**GOOD, "iat": 1001}), jws({**GOOD, "exp": 1001, "iat": 1001}), jws({"exp": 1600}),
    jws({"sub": "orders"}), jws({**GOOD, "sub": " "}), jws({**GOOD, "exp": "1600"}), jws({**GOOD, "exp": True}),
    jws({**GOOD, "exp": float("nan")}), jws({**GOOD, "exp": float("inf")}), jws(b"[" * 100_000),
    jws({**GOOD, "scope": 5}), jws(GOOD, signature="abc"), jws(GOOD, {"alg": "HS256"}), jws(GOOD, b"{"), "a.b", "a..b",
]  # fmt: skip


def test_a_token_that_nobody_signed_is_believed() -> None:
    assert unsecured(jws(GOOD), NOW_MS) == OAuthToken("orders", 1_600_000)
    assert unsecured(jws({**GOOD, "exp": 1000.0015, "iat": 999, "scope": ["a"]}), NOW_MS) == OAuthToken(
        "orders", 1_000_002
    )
    assert unsecured(jws(b'{"sub": "orders", "exp": 1e400}'), NOW_MS) == OAuthToken("orders", 2**63 - 1)


@pytest.mark.parametrize("token", NOT_VALID)
def test_what_is_not_valid(token: str) -> None:
    assert unsecured(token, NOW_MS) is None


@pytest.mark.parametrize("header", [{}, [], b"", {"alg": None}])
def test_what_kafka_fails_on_gets_no_answer(header: object) -> None:
    with pytest.raises(UnansweredLoginError):
        unsecured(jws(GOOD, header), NOW_MS)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126)) | st.builds(
    jws, st.dictionaries(st.sampled_from(["sub", "exp", "iat", "scope"]), st.text() | st.integers() | st.floats()
                         | st.booleans() | st.none() | st.lists(st.text()))
))  # fmt: skip
def test_whatever_a_token_is_the_answer_is_one_of_these(token: str) -> None:
    try:
        found = unsecured(token, NOW_MS)
    except UnansweredLoginError:
        return
    assert found is None or (found.user.strip() and found.expires_ms >= NOW_MS)


def log_in(visitor: Visitor, token: str) -> int:
    visitor.handshake("OAUTHBEARER")
    answer = visitor.step(first_message(token))
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.NONE, b"")
    return int(answer.session_lifetime_ms)


def validated(token: str) -> OAuthToken | None:
    user, _, lifetime_ms = token.partition(".")
    return OAuthToken(user, int(lifetime_ms)) if lifetime_ms else None


def test_a_session_ends_with_its_token_unless_the_client_logs_in_again() -> None:
    security = Security(mechanisms=["OAUTHBEARER"], validate_token=validated, max_session_ms=60_000)
    with Coordinator(security=security).in_thread() as running:
        running.clock.freeze()
        now_ms = running.clock.now_ms
        door = Door(running.bootstrap_servers)
        with door.visitor() as idle, door.visitor() as diligent, door.visitor() as refused:
            assert log_in(idle, f"orders.{now_ms + 5000}") == 5000
            assert log_in(diligent, f"orders.{now_ms + 90_000}") == 60_000  # the token would hold longer
            refused.handshake("OAUTHBEARER")
            assert refused.step(first_message("orders")).auth_bytes == b'{"status":"invalid_token"}'
            assert refused.step(b"\x01").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            running.clock.step(5000)
            assert idle.works() == ErrorCode.UNKNOWN_MEMBER_ID
            running.clock.step(1)
            with pytest.raises((AssertionError, ConnectionResetError)):
                idle.works()
            assert log_in(diligent, f"orders.{now_ms + 200_000}") == 60_000
            running.clock.step(60_000)
            assert diligent.works() == ErrorCode.UNKNOWN_MEMBER_ID
            running.clock.step(1)
            assert log_in(diligent, f"orders.{now_ms + 200_000}") == 60_000  # late, but nothing else came before
            assert diligent.handshake("OAUTHBEARER")[0] == ErrorCode.ILLEGAL_SASL_STATE  # not twice a second
            running.clock.step(1000)
            diligent.handshake("OAUTHBEARER")
            answer = diligent.step(first_message(f"billing.{now_ms + 200_000}"))
            assert answer.error_message == (
                "Cannot change principals during re-authentication from User.orders: User.billing"
            )
            assert diligent.is_hung_up_on()


@pytest.mark.parametrize("max_session_ms", [0, 60_000])
def test_a_session_longer_than_kafka_can_count_is_hung_up_on(max_session_ms: int) -> None:
    security = Security(mechanisms=["OAUTHBEARER"], max_session_ms=max_session_ms)
    with Coordinator(security=security).in_thread() as running:
        now_s = time.time()
        for expires_s, is_too_late in ((now_s + 9.2e9, False), (now_s + 9.3e9, True), (10**30, True)):
            with Door(running.bootstrap_servers).visitor() as visitor:
                visitor.handshake("OAUTHBEARER")
                message = first_message(jws({"sub": "orders", "exp": expires_s}))
                if is_too_late and not max_session_ms:
                    with pytest.raises((AssertionError, ConnectionResetError)):
                        visitor.step(message)
                else:
                    assert visitor.step(message).error_code == 0


def test_no_token_stands_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with Coordinator(security=Security(mechanisms=["OAUTHBEARER"])).in_thread() as running:
        door = Door(running.bootstrap_servers)
        expired, unsigned = jws({**GOOD, "sub": "not-to-be-seen"}), jws(GOOD, {})
        for token in (expired, unsigned, "not.to.be-seen"):
            with door.visitor() as visitor:
                visitor.handshake("OAUTHBEARER")
                with contextlib.suppress(AssertionError, ConnectionResetError):  # one gets no answer
                    visitor.step(first_message(token))
                    visitor.step(b"\x01")
                assert visitor.is_hung_up_on()
    for token in (expired, unsigned, "not-to-be-seen", "be-seen"):
        assert token not in caplog.text


def test_a_time_that_cannot_be() -> None:
    with pytest.raises(BadSecurityError, match="max_session_ms is -1"):
        Security(max_session_ms=-1)


def test_librdkafka_renews_its_sessions_and_loses_nothing() -> None:
    """On one connection. On a busy machine it may come too late, and connects again."""
    handshakes: Counter[int] = Counter()

    def counted(call: Call, cluster: Cluster) -> Response:
        handshakes[call.connection_id] += 1
        return sasl_handshake.handle(call, cluster)

    coordinator = Coordinator(security=Security(users={"orders": "a-secret"}, max_session_ms=1500))
    coordinator._embedded.router.services[17].handle = counted
    errors: list[KafkaError] = []
    delivered: list[object] = []
    with coordinator.in_thread() as running:
        settings = {
            "bootstrap.servers": running.bootstrap_servers, "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "orders", "sasl.password": "a-secret",
            "error_cb": errors.append, "log_level": 0,
        }  # fmt: skip
        producer = Producer(settings)
        deadline = time.monotonic() + WAIT_S
        sent = 0
        while max(handshakes.values(), default=0) < 4:
            assert time.monotonic() < deadline, handshakes
            producer.produce("t", b"x", on_delivery=lambda error, _: delivered.append(error))
            sent += 1
            producer.poll(0.05)
        assert producer.flush(WAIT_S) == 0
    assert delivered == [None] * sent
    late = [each.str() for each in errors if each.code() != KafkaError._ALL_BROKERS_DOWN]
    assert all("Local: Broker transport failure" in each for each in late), late  # hung up on, not refused
