"""Requests refused as a whole, against the real kafka-clients 4.3.1 (``tests/golden/make_refusals.py`` asked them).

Both answers are decoded with kafka-python's classes and compared field by field.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from client_messages import client_message, client_request, request_bytes

from loadwise.coordinator.calls.call import Call, NoAnswer
from loadwise.coordinator.handling.refusals import refusal
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.coordinator.security.login import SaslLogin
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import body_in_turns, decode_request, served
from loadwise.protocol.structs import Struct

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "kafka-clients-4.3.1-refusals.jsonl"
VECTORS = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
APIS = served(service.api for service in services().values())
TEXTS_FOR_PEOPLE = {"error_message"}


def told(struct: Any, version: int) -> dict[str, Any]:
    """All that a client reads in a struct."""
    values = {}
    for field in struct._struct.fields.values():
        if field.for_version_q(version) and field.tag is None and field.name not in TEXTS_FOR_PEOPLE:
            value = getattr(struct, field.name)
            is_rows = field.is_struct_array() and value is not None
            values[field.name] = [told(row, version) for row in value] if is_rows else value
    return values


def test_every_api_and_version_that_is_served_has_its_vector() -> None:
    served_here = {
        (api.name, version) for api in APIS.values() for version in range(api.min_version, api.max_version + 1)
    }
    assert {(vector["api"], vector["version"]) for vector in VECTORS} == served_here


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['api']}-v{vector['version']}")
def test_a_refusal_is_the_one_of_apache_kafka(vector: dict[str, Any]) -> None:
    call = Call(1, decode_request(bytes.fromhex(vector["request"]), APIS), "/127.0.0.1")
    response = client_message(call.request.api.response.__name__)
    refused = refusal(call, ErrorCode.REBALANCE_IN_PROGRESS)
    assert isinstance(refused, Struct)
    ours = b"".join(whole(body_in_turns(refused, call.version)))
    theirs = bytes.fromhex(vector["response"])
    if vector["api"] == "ApiVersions":  # kafka-python reads every refusal of it as v0
        assert ours == theirs
        return
    ours, theirs = (response.decode(body, version=call.version) for body in (ours, theirs))
    assert told(ours, call.version) == told(theirs, call.version)


def test_a_produce_that_wants_no_answer_gets_none() -> None:
    vector = next(vector for vector in VECTORS if vector["api"] == "Produce")
    call = Call(1, decode_request(bytes.fromhex(vector["request"]), APIS), "/127.0.0.1")
    call.body.acks = 0
    assert isinstance(refusal(call, ErrorCode.NOT_LEADER_OR_FOLLOWER), NoAnswer)


def test_tokens_are_disabled_for_a_client_that_has_logged_in() -> None:
    request = client_request("CreateDelegationToken", 3, max_lifetime_ms=-1)
    call = Call(1, decode_request(request_bytes(request, 1, "c"), APIS), "/127.0.0.1")
    (answer,) = Router().receive(call._replace(login=SaslLogin.by_certificate("x")), 1000)
    made = answer.response
    assert made.error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (made.principal_name, made.token_requester_principal_name, made.expiry_timestamp_ms) == ("x", "x", 0)
