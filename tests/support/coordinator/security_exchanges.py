"""Logging in and the users of SCRAM, each asked over a wire in one of its versions: for ``test_every_version.py``."""

from __future__ import annotations

from typing import Any

from loadwise.protocol.error_codes import ErrorCode


def sasl_handshake(wire: Any, version: int) -> None:
    answer = wire.ask("SaslHandshake", version, mechanism="PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


def sasl_authenticate(wire: Any, version: int) -> None:
    answer = wire.ask("SaslAuthenticate", version, auth_bytes=b"x")
    assert (answer.error_code, answer.auth_bytes) == (ErrorCode.ILLEGAL_SASL_STATE, b"")


def user_scram_credentials(wire: Any, version: int) -> None:
    row = {"name": "u", "mechanism": 2, "iterations": 5000, "salt": b"s" * 20, "salted_password": b"p" * 64}
    answer = wire.ask("AlterUserScramCredentials", version, upsertions=[row])
    assert [(each.user, each.error_code) for each in answer.results] == [("u", 0)]
    answer = wire.ask("DescribeUserScramCredentials", version, users=None)
    (found,) = answer.results
    assert (answer.error_code, found.user, found.error_code) == (0, "u", 0)
    assert [(each.mechanism, each.iterations) for each in found.credential_infos] == [(2, 5000)]


alter_user_scram_credentials = describe_user_scram_credentials = user_scram_credentials
