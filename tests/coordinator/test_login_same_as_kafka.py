"""Logging in: the same bytes to Apache Kafka and to ours get the same answers, and close the same connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from secured_kafka import PASSWORDS, SecuredKafka
from topics import WAIT_S
from visitors import Door

from loadwise.coordinator import Coordinator, Security

pytestmark = pytest.mark.kafka

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
                yield visitor.works() if answer[-1] == 0 else visitor.is_hung_up_on()
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
            deadline = time.monotonic() + WAIT_S
            while {row[1] for row in visitor.described_scram(*names)[1]} != {error}:
                assert time.monotonic() < deadline  # Kafka's broker hears of it some time after the answer
            return visitor.described_scram(*names)

        yield visitor.alter_scram(("new", 1, 4096), ("other", 2, 16384)), awaited("new", "other")
        yield visitor.alter_scram(("new", 2, 5000)), visitor.described_scram("none")
        yield visitor.alter_scram(("a", 1, 4095), ("b", 1, 16385), ("c", 0, 4096), ("d", 3, 4096), ("", 1, 4096))
        yield visitor.alter_scram(("new", 1, 4096), ("new", 1, None)), visitor.alter_scram(("new", 1, 1), ("new", 2, 1))
        yield visitor.alter_scram(("none", 1, None), ("other", 1, None), ("other2", 9, None), ("", 1, None))
        yield visitor.described_scram("other", "other"), visitor.described_scram("owner")
        yield visitor.alter_scram(("other", 2, None)), awaited("other", error=91)


SCENARIOS = [plain, scram, handshakes, raw_tokens, requests_before_the_login, after_the_login, users]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_ours_answers_as_kafka_does(secured: SecuredKafka, scenario: Callable[[Door], Iterator[Any]]) -> None:
    with Coordinator(security=Security(users=PASSWORDS)).in_thread() as coordinator:
        theirs, ours = Door(secured.addresses["SASL_PLAINTEXT"]), Door(coordinator.bootstrap_servers)
        for step, (expected, got) in enumerate(zip(scenario(theirs), scenario(ours), strict=True)):
            assert got == expected, f"answer {step}"
