"""A group member that fetches nothing: the group's half of a confluent-kafka consumer and of a Spark stream.

It is built on kafka-python. `loadwise.assignor.clients.confluent_kafka` reaches kafka-python through this folder only.
"""

from __future__ import annotations

from loadwise.assignor.clients.membership.version import TRIED

# The version is checked before anything of the client is imported.
# isort: split
from kafka import errors as member_errors
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Partition

from loadwise.assignor.clients.membership.commits import CommitOutcome, Offsets
from loadwise.assignor.clients.membership.librdkafka_config import OF_THE_MEMBER, member_settings, milliseconds
from loadwise.assignor.clients.membership.member import (
    WAKE_S,
    GroupMetadata,
    Membership,
    RebalanceListener,
    planned_member,
    weakly,
)
from loadwise.assignor.clients.membership.topics import ToldOnce

__all__ = [
    "OF_THE_MEMBER",
    "TRIED",
    "WAKE_S",
    "CommitOutcome",
    "GroupMetadata",
    "Membership",
    "OffsetAndMetadata",
    "Offsets",
    "Partition",
    "RebalanceListener",
    "ToldOnce",
    "member_errors",
    "member_settings",
    "milliseconds",
    "planned_member",
    "weakly",
]
