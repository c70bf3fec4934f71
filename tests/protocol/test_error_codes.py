"""Kafka's error codes beside kafka-python's."""

from __future__ import annotations

from kafka import errors

from loadwise.protocol.error_codes import ErrorCode

OLDER_NAMES = {
    "NONE": "NO_ERROR",
    "UNKNOWN_SERVER_ERROR": "UNKNOWN",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_FOR_PARTITION",
    "MESSAGE_TOO_LARGE": "MESSAGE_SIZE_TOO_LARGE",
    "INVALID_TOPIC_EXCEPTION": "INVALID_TOPIC",
    "INVALID_REPLICA_ASSIGNMENT": "INVALID_REPLICATION_ASSIGNMENT",
}
"""kafka-python's names of some errors: those of Kafka's protocol guide, or earlier ones."""
NEWER = {
    "INVALID_REGULAR_EXPRESSION": 128,
    "REBOOTSTRAP_REQUIRED": 129,
    "STREAMS_INVALID_TOPOLOGY": 130,
    "STREAMS_INVALID_TOPOLOGY_EPOCH": 131,
    "STREAMS_TOPOLOGY_FENCED": 132,
    "SHARE_SESSION_LIMIT_REACHED": 133,
}
"""Those that kafka-python does not know, by ``Errors`` of kafka-clients 4.3.1."""


def test_all_codes_are_kafkas() -> None:
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    answers = [each for each in classes if issubclass(each, errors.BrokerResponseError) and each.errno is not None]
    theirs = {each.message: each.errno for each in answers}
    ours = {OLDER_NAMES.get(name, name): int(code) for name, code in ErrorCode.__members__.items()}
    assert ours == theirs | NEWER
