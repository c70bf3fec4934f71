"""What ACLs let a client do with share groups: the operations are those that Kafka's ``KafkaApis`` asks for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from wires import Wire

from loadwise.coordinator import Acl
from loadwise.coordinator.authorization.authorizer import Authorizer
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.share.feature import ShareGroups
from loadwise.protocol.error_codes import ErrorCode

_NO_GROUP, _NO_TOPIC = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP_DESCRIBE, _GROUP_READ, _GROUP_DELETE = (f"GROUP {each}" for each in ("DESCRIBE", "READ", "DELETE"))
_TOPIC_DESCRIBE, _TOPIC_READ = "TOPIC DESCRIBE", "TOPIC READ"


def wire_with(*granted: str, members: bool = True) -> Wire:
    """A broker with share group ``s``, of which a client may do this to the group and to topic ``t``."""
    wire = Wire()
    wire.cluster.resource_configs.put(ConfigResourceType.GROUP, "s", {"share.auto.offset.reset": "earliest"})
    assert heartbeat(wire) == 0
    assert fetched(wire, 0) == (0, 0, True)
    if not members:
        assert heartbeat(wire, -1) == 0
    wire.cluster.authorizer = Authorizer(acls(granted))
    return wire


def acls(granted: Iterable[str]) -> list[Acl]:
    names = {"GROUP": "s", "TOPIC": "t"}
    return [Acl.of("User:ANONYMOUS", operation, kind, names[kind]) for kind, operation in map(str.split, granted)]


def asked(wire: Wire, name: str, **values: Any) -> Any:
    version = 0 if name in {"AlterShareGroupOffsets", "DeleteShareGroupOffsets"} else 1
    return wire.ask(name, version, **values)


def heartbeat(wire: Wire, epoch: int = 0) -> int:
    values = {"member_epoch": epoch, "subscribed_topic_names": ["t"]}
    error: int = asked(wire, "ShareGroupHeartbeat", group_id="s", member_id="m", **values).error_code
    return error


def fetched(wire: Wire, epoch: int) -> tuple[int, int | None, bool]:
    """Errors of a ShareFetch and of its partition, and whether there were records."""
    topics = [{"topic_id": wire.topic_id, "partitions": [{"partition_index": 0}]}]
    values = {"max_bytes": 1_000_000, "min_bytes": 1, "max_records": 500, "max_wait_ms": 0, "batch_size": 500}
    answer = asked(wire, "ShareFetch", group_id="s", member_id="m", share_session_epoch=epoch, topics=topics, **values)
    rows = [row for topic in answer.responses for row in topic.partitions]
    return answer.error_code, rows[0].error_code if rows else None, any(row.records for row in rows)


def acknowledged(wire: Wire) -> tuple[int, int | None]:
    batch = {"first_offset": 0, "last_offset": 2, "acknowledge_types": [1]}
    topics = [{"topic_id": wire.topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": [batch]}]}]
    answer = asked(wire, "ShareAcknowledge", group_id="s", member_id="m", share_session_epoch=1, topics=topics)
    rows = [row.error_code for topic in answer.responses for row in topic.partitions]
    return answer.error_code, rows[0] if rows else None


@pytest.mark.parametrize(
    ("granted", "error"),
    [
        ((), _NO_GROUP),
        ((_GROUP_DESCRIBE, _TOPIC_READ), _NO_GROUP),
        ((_GROUP_READ,), _NO_TOPIC),
        ((_GROUP_READ, _TOPIC_DESCRIBE), ErrorCode.NONE),
    ],
)
def test_a_member_may_read_its_group_and_describe_its_topics(granted: tuple[str, ...], error: ErrorCode) -> None:
    assert heartbeat(wire_with(*granted)) == error


@pytest.mark.parametrize(
    ("granted", "errors"),
    [
        ((), (_NO_GROUP, None)),
        ((_GROUP_DESCRIBE, _TOPIC_READ), (_NO_GROUP, None)),
        ((_GROUP_READ, _TOPIC_DESCRIBE), (0, _NO_TOPIC)),
        ((_GROUP_READ, _TOPIC_READ), (0, 0)),
    ],
)
def test_records_are_for_those_who_may_read_the_group_and_the_topic(
    granted: tuple[str, ...], errors: tuple[int, int | None]
) -> None:
    wire = wire_with(*granted)
    assert acknowledged(wire) == errors
    wire = wire_with(*granted)
    ShareGroups.of(wire.cluster).shares.disconnected(0)
    assert fetched(wire, 0) == (*errors, errors == (0, 0)), "what the lost connection had is there for others"
    state = ShareGroups.of(wire.cluster).shares.state("s", wire.topic_id, 0)
    assert state is not None
    assert not state.delivered, "nothing was acknowledged"


@pytest.mark.parametrize(
    ("granted", "error", "members"),
    [
        ((_TOPIC_DESCRIBE,), _NO_GROUP, 0),
        ((_GROUP_DESCRIBE,), _NO_TOPIC, 0),
        ((_GROUP_DESCRIBE, _TOPIC_DESCRIBE), ErrorCode.NONE, 1),
    ],
)
def test_who_describes_a_share_group_may_describe_its_topics(
    granted: tuple[str, ...], error: ErrorCode, members: int
) -> None:
    (group,) = asked(wire_with(*granted), "ShareGroupDescribe", group_ids=["s"]).groups
    assert (group.error_code, len(group.members)) == (error, members)


def test_a_share_group_is_described_with_what_the_client_may_do() -> None:
    wire = wire_with(_GROUP_READ, _TOPIC_DESCRIBE)
    (group,) = asked(wire, "ShareGroupDescribe", group_ids=["s"], include_authorized_operations=True).groups
    assert group.authorized_operations == {Operation.READ, Operation.DESCRIBE}
    (group,) = asked(wire, "ShareGroupDescribe", group_ids=["s"], include_authorized_operations=False).groups
    assert group.authorized_operations is None


@pytest.mark.parametrize("names_topics", [False, True])
@pytest.mark.parametrize(
    ("granted", "error", "rows"),
    [
        ((_TOPIC_DESCRIBE,), _NO_GROUP, []),
        ((_GROUP_DESCRIBE,), ErrorCode.NONE, [_NO_TOPIC]),
        ((_GROUP_DESCRIBE, _TOPIC_DESCRIBE), ErrorCode.NONE, [ErrorCode.NONE]),
    ],
)
def test_offsets_are_told_of_topics_that_the_client_may_describe(
    granted: tuple[str, ...], error: ErrorCode, rows: list[ErrorCode], names_topics: bool
) -> None:
    topics = [{"topic_name": "t", "partitions": [0]}] if names_topics else None
    answer = asked(wire_with(*granted), "DescribeShareGroupOffsets", groups=[{"group_id": "s", "topics": topics}])
    (group,) = answer.groups
    assert group.error_code == error
    told = {row.error_code for topic in group.topics for row in topic.partitions}
    assert told == ({*rows} if names_topics or rows == [ErrorCode.NONE] else set()), "others are hidden, not refused"


@pytest.mark.parametrize(
    ("api", "on_group", "other"),
    [("AlterShareGroupOffsets", _GROUP_READ, _GROUP_DELETE), ("DeleteShareGroupOffsets", _GROUP_DELETE, _GROUP_READ)],
)
def test_offsets_are_changed_with_rights_to_the_group_and_the_topic(api: str, on_group: str, other: str) -> None:
    topic = {"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 1}]}
    if api == "DeleteShareGroupOffsets":
        del topic["partitions"]

    def outcome(*granted: str) -> tuple[int, list[int]]:
        answer = asked(wire_with(*granted, members=False), api, group_id="s", topics=[topic])
        rows = [row for each in answer.responses for row in (getattr(each, "partitions", None) or [each])]
        return answer.error_code, [row.error_code for row in rows]

    assert outcome(other, _TOPIC_READ) == (_NO_GROUP, [])
    assert outcome(on_group, _TOPIC_DESCRIBE) == (0, [_NO_TOPIC])
    assert outcome(on_group, _TOPIC_READ) == (0, [0])
