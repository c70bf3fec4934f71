"""What ACLs let a client do with streams groups, and what it is told of topics that cannot be made for its group.

The operations are those that Kafka's ``KafkaApis`` asks for.
"""

from __future__ import annotations

import pytest
from streams_exchanges import beat, topology
from wires import Wire, allow

from loadwise.coordinator.streams.feature import StreamsGroups
from loadwise.protocol.error_codes import ErrorCode

CHANGELOG = "app-counts-changelog"
ALL = ("GROUP READ app", "TOPIC DESCRIBE t", f"TOPIC DESCRIBE {CHANGELOG}", f"TOPIC CREATE {CHANGELOG}")


@pytest.mark.parametrize(
    ("missing", "error"),
    [
        (None, ErrorCode.NONE),
        (ALL[0], ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ALL[1], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        # Who may create a topic may not describe it for that alone.
        (ALL[2], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_who_joins_may_read_the_group_and_describe_its_topics(missing: str | None, error: ErrorCode) -> None:
    wire = Wire()
    allow(wire, *(each for each in ALL if each != missing))
    assert beat(wire).error_code == error
    assert (StreamsGroups.of(wire.cluster).group("app") is None) == bool(error)


def test_topics_are_made_with_the_rights_of_the_client() -> None:
    wire = Wire()
    allow(wire, *ALL[:3])
    for epoch in (0, 2):
        (status,) = beat(wire, member_epoch=epoch, topology=None if epoch else topology()).status
        assert status.status_detail == (
            f"Internal topics are missing: {CHANGELOG}; Unauthorized to CREATE on topics {CHANGELOG}."
        )
    allow(wire, *ALL)
    beat(wire, member_epoch=2, topology=None)
    assert wire.cluster.topics.get(CHANGELOG) is not None
    assert beat(wire, member_epoch=2, topology=None).status == []


def test_who_describes_may_describe_the_topics() -> None:
    wire = Wire()
    beat(wire)
    for granted, error in (
        ((), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (("GROUP DESCRIBE app", "TOPIC DESCRIBE t"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (("GROUP DESCRIBE app", *ALL[1:3]), ErrorCode.NONE),
    ):
        allow(wire, *granted)
        (group,) = wire.ask("StreamsGroupDescribe", 0, group_ids=["app"], include_authorized_operations=False).groups
        assert (group.error_code, group.topology is None) == (error, bool(error))


def test_why_a_topic_cannot_be_made_is_told_from_the_next_heartbeat_on() -> None:
    wire = Wire()
    wanted = topology()
    (config,) = wanted["subtopologies"][0]["state_changelog_topics"][0]["topic_configs"]
    config["value"] = "shrink"
    missing = f"Internal topics are missing: {CHANGELOG}"
    (status,) = beat(wire, topology=wanted).status
    assert status.status_detail == missing
    (status,) = beat(wire, member_epoch=2, topology=None).status
    assert status.status_detail.startswith(f"{missing}; Creation failed: {CHANGELOG} (")
    assert "cleanup.policy" in status.status_detail
    StreamsGroups.of(wire.cluster).failed_topics.add("other", "as it is", 2_000)
    assert StreamsGroups.of(wire.cluster).failed_topics.of(["other", CHANGELOG], 1_999).keys() == {"other", CHANGELOG}
    assert StreamsGroups.of(wire.cluster).failed_topics.of(["other", CHANGELOG], 2_000) == {}
