"""What ``KafkaApis`` and ``DelegationTokenControlManager`` tell of delegation tokens that are switched off.

What brokers refuse has times of -1. What the controller refuses has the schema's 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import client_messages
import pytest

from loadwise.coordinator import Acl, Authorization, Security
from loadwise.coordinator.calls import Call
from loadwise.coordinator.router import Router
from loadwise.coordinator.security.login import Login
from loadwise.coordinator.services import services
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, served

APIS = served(each.api for each in services().values())
MAY = Acl.of("User:x", "CREATE_TOKENS", "USER", "User:y")


def asked(request: Any, user: str | None, acls: Sequence[Acl] | None = None) -> Any:
    security = None if acls is None else Security(protocol="PLAINTEXT", authorization=Authorization(acls=acls))
    request.with_header(1, "c")
    login = None if user is None else Login.by_certificate(user)
    call = Call(1, decode_request(bytes(request.encode(header=True)), APIS), "/127.0.0.1", login=login)
    (answer,) = Router(security=security).receive(call, 1000)
    return answer.response


def created(user: str | None, owner: str | None, renewer: str = "User", acls: Sequence[Acl] | None = None) -> Any:
    row = client_messages.CreateDelegationTokenRequest.CreatableRenewers
    request = client_messages.CreateDelegationTokenRequest(
        version=3,
        owner_principal_type=owner and "User",
        owner_principal_name=owner,
        renewers=[row(principal_type=renewer, principal_name="r")],
        max_lifetime_ms=-1,
    )
    answer = asked(request, user, acls)
    times = {answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms}
    return ErrorCode(answer.error_code), times, answer.principal_name, answer.token_requester_principal_name


@pytest.mark.parametrize("acls", [None, [], [MAY]])
def test_a_token_of_ones_own_needs_no_right(acls: Sequence[Acl] | None) -> None:
    for owner in (None, "", "x"):
        assert created("x", owner, acls=acls) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, {0}, "x", "x")
    assert created("x", None, "Group", acls) == (ErrorCode.INVALID_PRINCIPAL_TYPE, {-1}, "x", "x")


def test_a_token_of_somebody_else_needs_one() -> None:
    assert created("x", "y", acls=[]) == (ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, {-1}, "y", "x")
    assert created("x", "y", acls=[MAY]) == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, {0}, "y", "x")
    assert created("x", "y") == (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, {0}, "y", "x"), "nobody asks for rights"
    refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert created(None, "y", "Group", []) == (refused, {-1}, "y", "ANONYMOUS")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("x", (ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0)),
        (None, (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, -1)),
    ],
)
def test_no_token_ends_earlier_or_later(user: str | None, expected: tuple[ErrorCode, int]) -> None:
    renew = client_messages.RenewDelegationTokenRequest(version=2, hmac=b"x", renew_period_ms=-1)
    expire = client_messages.ExpireDelegationTokenRequest(version=2, hmac=b"x", expiry_time_period_ms=-1)
    for request in (renew, expire):
        answer = asked(request, user)
        assert (answer.error_code, answer.expiry_timestamp_ms) == expected
