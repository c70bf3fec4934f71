"""What brokers answer about groups, and what is made of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loadwise.assignor.model import Member
from loadwise.running_group.errors import UnreadableGroupError
from loadwise.running_group.members import RunningGroup, RunningMember, consumer_group, racks_of
from loadwise.running_group.reading import read_group


class Told:
    """An admin client whose broker answers this, and knows no groups of the new protocol."""

    def __init__(self, classic: Any) -> None:
        self.classic = classic

    def describe_classic(self, _: str) -> Any:
        return self.classic

    def describe_consumer_group(self, _: str) -> None:
        return None


def described(**changes: Any) -> Any:
    """A description as DescribeGroups has it."""
    given = {
        "error_code": 0,
        "error_message": None,
        "group_id": "g",
        "group_state": "Stable",
        "protocol_type": "consumer",
        "protocol_data": "range",
        "members": [SimpleNamespace(member_id="m", member_metadata=b"", member_assignment=b"")],
    }
    return SimpleNamespace(**given | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"error_code": 30}, "does not describe the group g: error 30"),
        ({"protocol_type": "connect"}, "not of consumers: its protocol type is 'connect'"),
        ({"group_state": "Empty", "members": []}, "the group g has no members"),
        ({"error_code": 69, "group_state": "Dead", "members": []}, "the group g has no members; check the name"),
        (
            {
                "members": [
                    SimpleNamespace(
                        member_id="m", client_id="c", client_host="/h", member_metadata=b"", member_assignment=b"\x00"
                    )
                ]
            },
            "the assignment of member m cannot be read",
        ),
    ],
)
def test_groups_that_cannot_be_read(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnreadableGroupError, match=message):
        read_group(Told(described(**changes)), "g")


def test_a_broker_that_has_the_new_protocol_switched_off() -> None:
    """Kafka 3.7 to 3.9 as they come: ConsumerGroupDescribe is there, and answers UNSUPPORTED_VERSION for each group."""
    off = SimpleNamespace(error_code=35, error_message=None, group_id="g", members=[])
    told = Told(described(group_state="Dead", members=[]))
    told.describe_consumer_group = lambda _: off  # type: ignore[method-assign,assignment,return-value]
    with pytest.raises(UnreadableGroupError, match="the group g has no members; check the name"):
        read_group(told, "g")


def test_racks_of_replicas() -> None:
    brokers = [{"broker_id": 1, "rack": "a"}, {"broker_id": 2, "rack": "b"}, {"broker_id": 3, "rack": None}]
    partitions = [{"partition_index": 1, "replica_nodes": [3, 9]}, {"partition_index": 0, "replica_nodes": [2, 1, 3]}]
    nowhere = [{"partition_index": 0, "replica_nodes": [3]}]
    assert racks_of(brokers, {"t": partitions, "u": nowhere}) == {"t": [["a", "b"], []]}


def test_labels_tell_members_apart() -> None:
    def member(member_id: str, client_id: str, instance_id: str | None = None) -> RunningMember:
        known = Member(id=member_id, topics=[], instance_id=instance_id)
        return RunningMember(member=known, client_id=client_id, client_host="/127.0.0.1")

    group = RunningGroup(
        group_id="g",
        protocol="range",
        is_classic=True,
        state="Stable",
        members=[member("b", "app"), member("a", "app"), member("c", "web"), member("d", "app", "static-1")],
    )
    assert group.labels == {"a": "app #1", "b": "app #2", "c": "web", "d": "static-1"}


def test_an_expression_that_only_the_broker_understands() -> None:
    member = SimpleNamespace(member_id="m", subscribed_topic_names=[], subscribed_topic_regex="(?P<a")
    group = SimpleNamespace(error_code=0, error_message=None, group_id="g", members=[member])
    group.assignor_name, group.group_state = "uniform", "Stable"
    with pytest.raises(UnreadableGroupError, match="member m subscribes to the expression"):
        consumer_group(group, ["t"])
