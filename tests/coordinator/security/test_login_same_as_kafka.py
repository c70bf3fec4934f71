"""Logging in: the same bytes to Apache Kafka and to ours get the same answers, and close the same connections."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest
from beside_kafka import Scenario, scenarios, steps_agree
from oauth_tokens import first_message, jws
from secured_kafka import MAX_SESSION_MS, MODULES, PASSWORDS, SecuredKafka
from topics import WAIT_S, until
from visitors import Door

from loadwise.coordinator import Coordinator, Security
from loadwise.protocol.error_codes import ErrorCode

pytestmark = pytest.mark.kafka

SECURITY = Security(users=PASSWORDS, mechanisms=(*MODULES, "OAUTHBEARER"), max_session_ms=MAX_SESSION_MS)
USER, PASSWORD = "owner", PASSWORDS["owner"]
GOOD = f"\0{USER}\0{PASSWORD}".encode()
FIRST_MESSAGES = (
    b"", b"x", b"n,,n=owner", b"y,,n=owner,r=abc", b"p=x,,n=owner,r=abc", b"n,,n=own=er,r=abc", b"\xff",
)  # fmt: skip
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def plain(door: Door) -> Iterator[Any]:
    for version in range(3):
        with door.visitor() as visitor:
            yield visitor.versions(), visitor.handshake("PLAIN"), visitor.authenticate(GOOD, version), visitor.works()
    for token in (
        b"\0owner\0wrong", b"\0nobody\0wrong", f"{USER}\0{USER}\0{PASSWORD}".encode(),
        f"reader\0{USER}\0{PASSWORD}".encode(), b"", b"x", b"\0owner", b"\0\0x", b"\0owner\0", b"\0owner\0a\0b",
        b"\xff\0\xff\0\xff",
    ):  # fmt: skip
        with door.visitor() as visitor:
            yield token, visitor.handshake("PLAIN"), (answer := visitor.authenticate(token))
            yield visitor.is_hung_up_on() if answer[0] else visitor.works()


def scram(door: Door) -> Iterator[Any]:
    for mechanism in SCRAM:
        for user, password in ((USER, PASSWORD), (USER, "wrong"), ("nobody", PASSWORD)):
            with door.visitor() as visitor:
                yield (
                    visitor.versions(),
                    visitor.handshake(mechanism),
                    (answer := visitor.scram(mechanism, user, password)),
                )
                yield visitor.works() if answer[1] == 0 else visitor.is_hung_up_on()
        for token in FIRST_MESSAGES:
            with door.visitor() as visitor:
                visitor.handshake(mechanism)
                answer = visitor.step(token)
                yield token, answer.error_code, answer.error_message
        with door.visitor() as visitor:
            visitor.handshake(mechanism)
            yield visitor.step(b"n,,n=owner,r=abc").error_code, visitor.authenticate(b"c=biws,r=abc,p=AAAA")
            yield visitor.is_hung_up_on()


def handshakes(door: Door) -> Iterator[Any]:
    for mechanism in ("GSSAPI", "plain", ""):
        with door.visitor() as visitor:
            yield visitor.handshake(mechanism), visitor.is_hung_up_on()
    with door.visitor() as visitor:
        yield visitor.versions(), visitor.handshake("PLAIN")
    for version in (0, 3):
        with door.visitor() as visitor:
            yield visitor.versions(version)
            visitor.send(bytes.fromhex("00120000000000070000"))
            yield visitor.is_hung_up_on()


def raw_tokens(door: Door) -> Iterator[Any]:
    with door.visitor() as visitor:
        yield visitor.handshake("PLAIN", 0), visitor.raw(GOOD), visitor.works()
    with door.visitor() as visitor:
        visitor.handshake("PLAIN", 0)
        visitor.send(b"\0owner\0wrong")
        yield visitor.is_hung_up_on()
    with door.visitor() as visitor:
        visitor.handshake(SCRAM[0], 0)
        yield visitor.raw(b"n,,n=owner,r=abc")[:5]
        visitor.send(b"c=biws,r=abc,p=AAAA")
        yield visitor.is_hung_up_on()


def requests_before_the_login(door: Door) -> Iterator[Any]:
    for stage in range(3):
        with door.visitor() as visitor:
            if stage > 0:
                yield visitor.versions()
            if stage > 1:
                yield visitor.handshake("PLAIN"), visitor.works()
            else:
                visitor.send(bytes.fromhex("0000000300000007ffff"))
            yield visitor.is_hung_up_on()
    for data in (b"", b"x" * 9, bytes.fromhex("7fff000000000007ffff"), b"x" * 600_000):
        with door.visitor() as visitor:
            try:
                visitor.send(data)
                yield visitor.is_hung_up_on()
            except (BrokenPipeError, ConnectionResetError):
                yield True


def after_the_login(door: Door) -> Iterator[Any]:
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        yield visitor.authenticate(GOOD), visitor.authenticate(GOOD), visitor.works()
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        yield visitor.authenticate(GOOD), visitor.versions(), visitor.versions(), visitor.works()


def users(door: Door) -> Iterator[Any]:
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        visitor.authenticate(GOOD)

        def awaited(*names: str, error: int = 0) -> Any:
            # Kafka's broker hears of it some time after the answer
            until(lambda: {row[1] for row in visitor.described_scram(*names)[1]} == {error})
            return visitor.described_scram(*names)

        yield visitor.alter_scram(("new", 1, 4096), ("other", 2, 16384)), awaited("new", "other")
        yield visitor.alter_scram(("new", 2, 5000)), visitor.described_scram("none")
        yield visitor.alter_scram(("a", 1, 4095), ("b", 1, 16385), ("c", 0, 4096), ("d", 3, 4096), ("", 1, 4096))
        yield visitor.alter_scram(("new", 1, 4096), ("new", 1, None)), visitor.alter_scram(("new", 1, 1), ("new", 2, 1))
        yield visitor.alter_scram(("none", 1, None), ("other", 1, None), ("other2", 9, None), ("", 1, None))
        yield visitor.described_scram("other", "other"), visitor.described_scram("owner")
        yield visitor.alter_scram(("other", 2, None)), awaited("other", error=91)


def tokens(door: Door) -> Iterator[Any]:
    now_s = int(time.time())
    good = {"sub": "owner", "exp": now_s + 7200}
    for number, token in enumerate((
        jws(good), jws({**good, "iat": now_s - 5, "scope": ["a"]}), jws({**good, "exp": now_s + 600}),
        jws({**good, "exp": now_s + 600.5, "scope": "a b"}),
        # Not valid any more, not yet, or never.
        jws({**good, "exp": now_s - 1}), jws({**good, "iat": now_s + 600}), jws({"sub": "owner"}),
        jws({"exp": now_s + 600}), jws({**good, "sub": " "}), jws({**good, "sub": 5}), jws({**good, "exp": "600"}),
        jws({**good, "exp": True}), jws({**good, "iat": "x"}), jws({**good, "scope": 5}), jws(good, signature="abc"),
        jws(good, {"alg": "HS256"}), jws(good, b"{"), jws(b"not json"), jws(good, {"alg": 5}), jws([1]),
        "a.b", "a.b.c.d", "a..b", "a", jws(good).replace(".", "..", 1),
        # Kafka fails on these.
        jws(good, {}), jws(good, []), jws(good, b""),
    )):  # fmt: skip
        with door.visitor() as visitor:
            visitor.handshake("OAUTHBEARER")
            try:
                answer = visitor.step(first_message(token))
            except (AssertionError, ConnectionResetError):
                yield number, "hung up"
                continue
            lifetime_ms = answer.session_lifetime_ms
            yield number, answer.error_code, answer.error_message, answer.auth_bytes, round(lifetime_ms / 60_000)
            if answer.auth_bytes:
                told = visitor.step(b"\x01")
                yield told.error_code, told.error_message, visitor.is_hung_up_on()
            else:
                yield visitor.is_hung_up_on() if answer.error_code else visitor.works()
    for number, message in enumerate((
        first_message(jws(good), "a=owner"), first_message(jws(good), "a=reader"), b"", b"\x01", b"n,,\x01\x01",
        b"y,,\x01auth=Bearer a\x01\x01", b"n,,\x01auth=Basic abc\x01\x01", b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=",
        first_message(jws(good))[:-1], b"n,,\x01a=b\x01" + first_message(jws(good))[4:],
        first_message(jws(good)).replace(b"Bearer", b"bEARER "),
    )):  # fmt: skip
        with door.visitor() as visitor:
            visitor.handshake("OAUTHBEARER")
            try:
                answer = visitor.step(message)
            except (AssertionError, ConnectionResetError):
                yield number, "hung up"
                continue
            yield number, answer.error_code, answer.error_message, answer.auth_bytes
            yield visitor.is_hung_up_on() if answer.error_code else visitor.works()
    with door.visitor() as visitor:  # who is told that a token is not valid may bring another
        visitor.handshake("OAUTHBEARER")
        yield visitor.step(first_message("a.b.c")).auth_bytes, visitor.step(first_message(jws(good))).error_code
        yield visitor.works()


def twice_within_a_second(door: Door) -> Any:
    """The answers to logging in again twice: once a second, and then nothing else may come in between.

    If the machine stops for that second, the second time is allowed: so another visitor tries.
    """
    while True:
        with door.visitor() as visitor:
            visitor.handshake("PLAIN")
            visitor.authenticate(GOOD)
            began_s = time.monotonic()
            visitor.handshake("PLAIN")
            answers = visitor.authenticate(GOOD), visitor.handshake("PLAIN")
            if time.monotonic() - began_s < 0.99:  # both brokers count in milliseconds or finer
                return *answers, visitor.works()


def logging_in_again(door: Door) -> Iterator[Any]:
    reader = f"\0reader\0{PASSWORDS['reader']}".encode()
    for mechanism, token in (
        ("PLAIN", GOOD), ("PLAIN", reader), ("PLAIN", b"\0owner\0wrong"), ("SCRAM-SHA-256", b"n,,n=owner,r=abc"),
        ("GSSAPI", b""),
    ):  # fmt: skip
        with door.visitor() as visitor:
            visitor.handshake("PLAIN")
            yield mechanism, visitor.authenticate(GOOD), visitor.works()
            try:
                yield (answer := visitor.handshake(mechanism))
                if answer[0]:
                    yield visitor.is_hung_up_on()
                    continue
                yield (told := visitor.authenticate(token))
                yield visitor.is_hung_up_on() if told[0] else visitor.works()
            except (AssertionError, ConnectionResetError):
                yield "hung up"
    with door.visitor() as visitor:
        visitor.handshake("SCRAM-SHA-256")
        yield visitor.scram("SCRAM-SHA-256", USER, PASSWORD)
        visitor.handshake("SCRAM-SHA-256")
        yield visitor.step(b"n,,n=owner,r=abc").error_code, visitor.authenticate(b"c=biws,r=abc,p=AAAA")
    yield twice_within_a_second(door)
    with door.visitor() as visitor:
        visitor.handshake("PLAIN")
        visitor.authenticate(GOOD)
        yield visitor.handshake("PLAIN"), visitor.works(), visitor.is_hung_up_on()


def a_session_that_ends(door: Door) -> Iterator[Any]:
    with door.visitor() as works, door.visitor() as waits:
        end_s = time.time() + 4  # a busy machine logs them in before
        for visitor in (works, waits):
            visitor.handshake("OAUTHBEARER")
            yield visitor.step(first_message(jws({"sub": "owner", "exp": end_s}))).error_code
        yield works.works()
        with pytest.raises((AssertionError, ConnectionResetError, BrokenPipeError)):  # noqa: PT012
            while time.time() < end_s + WAIT_S:
                works.works()
        yield time.time() >= end_s
        yield waits.handshake("OAUTHBEARER")[0]
        yield waits.step(first_message(jws({"sub": "owner", "exp": time.time() + 60}))).error_code, waits.works()


def test_nobody_logs_in_again_where_that_is_not_configured(secured: SecuredKafka) -> None:
    """Of Kafka's listeners only this one has no connections.max.reauth.ms."""
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.check_hostname = False
    answers = []
    with Coordinator(security=Security(users=PASSWORDS)).in_thread() as coordinator:
        for address, tls in ((secured.addresses["SASL_SSL"], context), (coordinator.bootstrap_servers, None)):
            with Door(address).visitor() as visitor:
                if tls is not None:
                    visitor.socket = tls.wrap_socket(visitor.socket)
                visitor.handshake("PLAIN")
                first, again = visitor.authenticate(GOOD), visitor.handshake("PLAIN")
                answers.append((first, again[0], visitor.works()))
    assert answers[0] == answers[1]
    assert answers[0][1] == ErrorCode.ILLEGAL_SASL_STATE


def test_a_session_longer_than_kafka_can_count_is_hung_up_on(secured: SecuredKafka) -> None:
    """Of Kafka's listeners only this one has no connections.max.reauth.ms."""
    context = ssl.create_default_context(cafile=str(secured.folder / "ca.pem"))
    context.check_hostname = False
    answers: dict[str, list[Any]] = {}
    now_s = time.time()
    with Coordinator(security=Security(mechanisms=["OAUTHBEARER"])).in_thread() as coordinator:
        for address, tls in ((secured.addresses["SASL_SSL"], context), (coordinator.bootstrap_servers, None)):
            for expires_s in (now_s + 9.2e9, now_s + 9.3e9, now_s + 2e10, 10**30):
                with Door(address).visitor() as visitor:
                    if tls is not None:
                        visitor.socket = tls.wrap_socket(visitor.socket)
                    visitor.handshake("OAUTHBEARER")
                    try:
                        answer: Any = visitor.step(first_message(jws({"sub": "owner", "exp": expires_s}))).error_code
                    except (AssertionError, ConnectionResetError):
                        answer = "hung up"
                    answers.setdefault(address, []).append(answer)
    theirs, ours = answers.values()
    assert ours == theirs
    assert theirs == [0, "hung up", "hung up", "hung up"]


@scenarios(
    tokens,
    logging_in_again,
    a_session_that_ends,
    plain,
    scram,
    handshakes,
    raw_tokens,
    requests_before_the_login,
    after_the_login,
    users,
)
def test_ours_answers_as_kafka_does(secured: SecuredKafka, scenario: Scenario) -> None:
    with Coordinator(security=SECURITY).in_thread() as coordinator:
        theirs, ours = Door(secured.addresses["SASL_PLAINTEXT"]), Door(coordinator.bootstrap_servers)
        steps_agree(scenario, theirs, ours)
