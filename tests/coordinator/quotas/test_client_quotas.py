"""Which client quotas there can be, by ``ClientQuotaControlManager.validateQuotaKeyValue`` and ``validateEntity``."""

from __future__ import annotations

import pytest

from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.quotas.client_quotas import CLIENT_ID, IP, USER, ClientQuotas

LARGEST = float(2**63 - 1)
"""What clients send for 9223372036854775807: the nearest double, which is one more, and Java takes it for no more."""


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ((USER, "a"), "producer_byte_rate", LARGEST),
        ((CLIENT_ID, None), "consumer_byte_rate", LARGEST),
        ((USER, None), "request_percentage", float("inf")),
        ((IP, None), "connection_creation_rate", 2.0**31 - 1),
    ],
)
def test_the_largest_that_kafka_takes_is_set(entity: tuple[str, str | None], key: str, value: float) -> None:
    quotas = ClientQuotas()
    quotas.alter([entity], {key: value}, validate_only=False)
    (record,) = quotas.records()
    assert (list(record.entity), record.quotas) == ([entity], {key: value})


@pytest.mark.parametrize(
    ("entity", "key", "value", "problem"),
    [
        ((USER, "a"), "producer_byte_rate", LARGEST * 1.1, "too large for a LONG"),
        ((IP, None), "connection_creation_rate", 2.0**31, "too large for an INT"),
        ((USER, "a"), "producer_byte_rate", 4.9999999, "cannot be a fractional value"),
        ((USER, ""), "producer_byte_rate", 1.0, "Empty user not supported"),
        ((CLIENT_ID, ""), "producer_byte_rate", 1.0, "Empty client-id not supported"),
        ((IP, ""), "connection_creation_rate", 1.0, "Empty ip not supported"),
    ],
)
def test_what_kafka_refuses_is_not_set(entity: tuple[str, str], key: str, value: float, problem: str) -> None:
    quotas = ClientQuotas()
    with pytest.raises(BadConfigError, match=problem):
        quotas.alter([entity], {key: value}, validate_only=False)
    assert list(quotas.records()) == []
