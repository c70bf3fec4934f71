"""Writers of what is not a record: each writes higher and higher numbers, so that it shows which ones were kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from client_messages import client_request
from sessions import Session
from streams_exchanges import streams_heartbeat

from loadwise.coordinator.authorization.authorizer import AclRecord
from loadwise.coordinator.cluster.records import TopicRecord
from loadwise.coordinator.groups.consumer_records import MemberSubscription
from loadwise.coordinator.groups.records import GroupRecord
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.quotas.client_quotas import QuotaRecord
from loadwise.coordinator.security.users import ScramRecord
from loadwise.coordinator.share.records import ShareMemberSubscription, ShareState
from loadwise.coordinator.streams.records import StreamsMemberMetadata

TOPIC = "t"
OPTIONS = (
    *("--config", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
    *("--config", "super.users=User:ANONYMOUS"),
)
"""Of the command line: a coordinator keeps ACLs only where they count."""
_FIRST_MS = 10**12


class NumberedWriter(NamedTuple):
    """Writes a number, and finds the highest that is kept."""

    name: str
    write: Callable[[Session, int], None]
    """Raises AssertionError if the coordinator refuses it."""
    found: Callable[[Snapshot], int]
    """0: none is kept."""


def _config(session: Session, number: int) -> None:
    config = {"name": "retention.ms", "config_operation": 0, "value": str(_FIRST_MS + number)}
    resource = {"resource_type": 2, "resource_name": TOPIC, "configs": [config]}
    answer = session.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    assert answer.responses[0].error_code == 0


def _config_found(state: Snapshot) -> int:
    (topic,) = [each for each in state.of(TopicRecord) if each.name == TOPIC]
    return int(topic.configs.get("retention.ms", _FIRST_MS)) - _FIRST_MS


def _quota(session: Session, number: int) -> None:
    row = {
        "entity": [{"entity_type": "user", "entity_name": "u"}],
        "ops": [{"key": "producer_byte_rate", "value": float(number), "remove": False}],
    }
    assert session.ask("AlterClientQuotas", 1, entries=[row], validate_only=False).entries[0].error_code == 0


def _credential(session: Session, number: int) -> None:
    row = {
        "name": "u",
        "mechanism": 1,
        "iterations": 4096,
        "salt": number.to_bytes(20, "big"),
        "salted_password": b"p" * 32,
    }
    assert session.ask("AlterUserScramCredentials", 0, upsertions=[row]).results[0].error_code == 0


def _acl(session: Session, number: int) -> None:
    row = {
        "resource_type": 2, "resource_name": TOPIC, "resource_pattern_type": 3, "principal": f"User:{number}",
        "host": "*", "operation": 3, "permission_type": 3,
    }  # fmt: skip
    assert session.ask("CreateAcls", 3, creations=[row]).results[0].error_code == 0


def _classic_member(session: Session, number: int) -> None:
    """A static member that joins with new metadata, and gives itself an assignment."""
    session.group = "classic"
    row = {"name": "range", "metadata": b"%d" % number}
    error, generation, _, _, who, *_ = session.join(instance="i", protocols=[row])
    assert error == 0
    row = {"member_id": session.member(who), "assignment": b"%d" % number}
    assert session.sync(who, generation, "i", assignments=[row])[0] == 0


def _consumer_member(session: Session, number: int) -> None:
    request = client_request(
        "ConsumerGroupHeartbeat", 1, group_id="consumer", member_id="m", member_epoch=0, rack_id=str(number),
        rebalance_timeout_ms=60_000, subscribed_topic_names=[TOPIC], topic_partitions=[],
    )  # fmt: skip
    assert session.exchange(request).error_code == 0


def _share_member(session: Session, number: int) -> None:
    answer = session.ask(
        "ShareGroupHeartbeat",
        1,
        group_id="share",
        member_id="m",
        member_epoch=0,
        rack_id=str(number),
        subscribed_topic_names=[TOPIC],
    )
    assert answer.error_code == 0


def _streams_member(session: Session, number: int) -> None:
    request = streams_heartbeat(rack_id=str(number))
    assert session.exchange(request).error_code == 0


def _share_start(session: Session, number: int) -> None:
    topic = {"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": number}]}
    answer = session.ask("AlterShareGroupOffsets", 0, group_id="shared", topics=[topic])
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)


def _racks(kind: type) -> Callable[[Snapshot], int]:
    """The number that is a member's rack."""
    return lambda state: _highest(int(each.rack or 0) for each in state.of(kind))


def _highest(numbers: Iterable[Any]) -> int:
    return max(map(int, numbers), default=0)


WRITERS = (
    NumberedWriter("a topic's config", _config, _config_found),
    NumberedWriter(
        "a quota", _quota, lambda state: _highest(each.quotas["producer_byte_rate"] for each in state.of(QuotaRecord))
    ),
    NumberedWriter(
        "a credential",
        _credential,
        lambda state: _highest(
            int.from_bytes(each.credential.salt, "big") for each in state.of(ScramRecord) if each.credential is not None
        ),
    ),
    NumberedWriter("an ACL", _acl, lambda state: len(list(state.of(AclRecord)))),
    NumberedWriter(
        "a classic member",
        _classic_member,
        lambda state: _highest(
            member.subscription or 0
            for group in state.of(GroupRecord)
            for member in group.members
            if group.group_id == "classic"
        ),
    ),
    NumberedWriter("a consumer member", _consumer_member, _racks(MemberSubscription)),
    NumberedWriter("a share member", _share_member, _racks(ShareMemberSubscription)),
    NumberedWriter("a streams member", _streams_member, _racks(StreamsMemberMetadata)),
    NumberedWriter(
        "the start of a share group",
        _share_start,
        lambda state: _highest(each.start_offset for each in state.of(ShareState) if each.group_id == "shared"),
    ),
)
