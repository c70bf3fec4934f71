"""Every limit of ``docs/limits.md``: its default stands there, and it holds. Those of connections are in
``test_server.py``, ``test_hostile_input.py`` and ``test_http.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from classic_events import join_event, sync_event
from commits import commit
from kafka import KafkaAdminClient, KafkaProducer
from kafka.errors import PolicyViolationError

from loadwise.coordinator import BrokerSettings, Coordinator, GroupLimits
from loadwise.coordinator.embedding.http.server import HttpLimits
from loadwise.coordinator.groups.classic.group import ClassicGroup
from loadwise.coordinator.groups.events import Committer, ConsumerHeartbeat, Leave, Leaver, Protocol
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.admission import Admission
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.serving.connections import ServerLimits
from loadwise.coordinator.transactions.limits import TransactionLimits
from loadwise.protocol.error_codes import ErrorCode

TABLE = Path(__file__).resolve().parents[3] / "docs" / "limits.md"
OWNERS: dict[str, Any] = {
    each.__name__: each() for each in (BrokerSettings, GroupLimits, HttpLimits, ServerLimits, TransactionLimits)
}


def test_the_table_has_every_limit_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| ([\d,]+) \|", TABLE.read_text(), re.MULTILINE)
    told = {(owner, name): int(value.replace(",", "")) for owner, name, value in rows}
    actual = {
        (owner, name): getattr(limits, name)
        for owner, limits in OWNERS.items()
        for name in limits.__dataclass_fields__
        if name.startswith("max_") and not name.endswith("timeout_ms")
    }
    actual["HttpLimits", "request_timeout_s"] = HttpLimits().request_timeout_s
    assert told == actual


class Asked:
    """Groups within limits, and what they answer."""

    def __init__(self, **limits: int) -> None:
        self.groups = Groups(GroupLimits(**limits))
        self.numbers: Iterator[int] = count(1)

    def join(
        self, group_id: str, member_id: str = "", metadata: bytes = b"", requires_member_id: bool = False
    ) -> tuple[ErrorCode, str]:
        number = next(self.numbers)
        fields = {"protocols": [Protocol("range", metadata)], "requires_member_id": requires_member_id}
        event = join_event(number, member_id, client_id="", client_host="", **fields)
        replies = {reply.token: reply.body for reply in self.groups.handle(group_id, event, 0)}
        body: Any = replies.get(number)
        return (ErrorCode.NONE, "") if body is None else (body.error, body.member_id)

    def consumer_join(self, group_id: str, member_id: str, topics: list[str]) -> ErrorCode:
        event = ConsumerHeartbeat(
            token=next(self.numbers),
            member_id=member_id,
            epoch=0,
            rebalance_timeout_ms=10_000,
            topics=topics,
            owned={},
        )
        (reply,) = self.groups.handle(group_id, event, 0)
        error: ErrorCode = reply.body.error
        return error

    def commit(self, group_id: str, metadata: str = "", number: int = 0) -> ErrorCode:
        offsets = {Partition("t", number): CommittedOffset(1, -1, metadata)}
        return commit(self.groups, group_id, Committer(), offsets)


def test_there_are_no_more_groups_than_allowed() -> None:
    asked = Asked(max_groups=2)
    assert asked.join("one")[0] is ErrorCode.NONE
    assert asked.commit("two") is ErrorCode.NONE
    assert asked.join("three")[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.consumer_join("three", "m", ["t"]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.commit("three") is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert asked.commit("two") is ErrorCode.NONE, "those that are there go on"
    assert asked.groups.delete("two", 0)[0] is ErrorCode.NONE
    assert asked.join("three")[0] is ErrorCode.NONE


def test_there_are_no_more_members_than_allowed_in_all_groups_together() -> None:
    asked = Asked(max_members=2)
    _, first = asked.join("one")
    assert asked.consumer_join("two", "m", ["t"]) is ErrorCode.NONE
    assert asked.join("one")[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.consumer_join("two", "n", ["t"]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.consumer_join("two", "m", ["t"]) is ErrorCode.NONE, "who is there may join again"
    assert asked.join("one", first)[0] is ErrorCode.NONE
    asked.groups.handle("one", Leave(token=99, leavers=[Leaver(first, None)]), 0)
    assert asked.join("one")[0] is ErrorCode.NONE


class CountedGroup(ClassicGroup):
    """A group that counts how often its members are counted."""

    asked = 0

    @property
    def num_members(self) -> int:
        self.asked += 1
        return super().num_members


def test_members_are_not_counted_again_while_there_is_room_for_those_who_came_since() -> None:
    limits = GroupLimits(max_members=10)
    groups = {"one": CountedGroup("one", limits)}
    admission = Admission(limits, {})
    event = ConsumerHeartbeat(token=1, member_id="m", epoch=0, topics=["t"])
    for _ in range(10):
        assert admission.refusal(groups, "two", event) == (ErrorCode.NONE, None)
    assert groups["one"].asked == 1
    assert admission.refusal(groups, "two", event) == (ErrorCode.NONE, None), "the ten did not come after all"
    assert groups["one"].asked == 2


def test_ids_that_were_given_out_count_as_members() -> None:
    asked = Asked(max_members=1)
    assert asked.join("one", requires_member_id=True)[0] is ErrorCode.MEMBER_ID_REQUIRED
    assert asked.join("two", requires_member_id=True)[0] is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_say_no_more_than_allowed() -> None:
    asked = Asked(max_member_bytes=100)
    _, first = asked.join("one", metadata=b"x" * 60)
    assert asked.join("two", metadata=b"x" * 41)[0] is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.consumer_join("two", "m", ["t" * 41]) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert asked.join("two", metadata=b"x" * 40)[0] is ErrorCode.NONE
    (reply,) = asked.groups.handle("one", sync_event(99, first, 1, [(first, b"x")]), 0)
    assert reply.body.error is ErrorCode.UNKNOWN_SERVER_ERROR


def test_committed_offsets_take_no_more_than_allowed() -> None:
    asked = Asked(max_offset_bytes=350)
    assert asked.commit("one", "x" * 99) is ErrorCode.NONE
    assert asked.commit("one", "x" * 49) is ErrorCode.NONE, "in place of the one before"
    assert asked.commit("one", "x" * 100, number=1) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert asked.commit("one", "", number=1) is ErrorCode.NONE
    asked.groups.forget_topics({"t"})
    assert asked.commit("one", "x" * 249) is ErrorCode.NONE
    assert asked.commit("two") is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert asked.groups.delete("one", 0)[0] is ErrorCode.NONE
    assert asked.commit("two") is ErrorCode.NONE


def test_no_more_records_are_kept_than_allowed_and_deleting_a_topic_makes_room() -> None:
    settings = BrokerSettings(max_kept_bytes=2000)
    with Coordinator({"full": 1, "other": 1}, settings=settings).in_thread() as coordinator:
        address = coordinator.bootstrap_servers
        with KafkaProducer(bootstrap_servers=address) as producer:
            producer.send("full", b"x" * 1500).get(60)
            with pytest.raises(PolicyViolationError):
                producer.send("other", b"x" * 1000).get(60)
        with KafkaAdminClient(bootstrap_servers=address) as admin:
            admin.delete_topics(["full"])
        with KafkaProducer(bootstrap_servers=address) as producer:  # the first one gave up for good
            producer.send("other", b"x" * 1000).get(60)


def test_a_client_is_told_that_there_are_too_many_partitions_or_that_a_batch_is_too_large() -> None:
    settings = BrokerSettings(max_partitions=3, max_batch_bytes=1000)
    with Coordinator({"t": 2}, settings=settings).in_thread() as coordinator:
        config = {"bootstrap.servers": coordinator.bootstrap_servers, "log_level": 0}
        admin = confluent_kafka.admin.AdminClient(config)
        (made,) = admin.create_topics([confluent_kafka.admin.NewTopic("more", 2)]).values()
        with pytest.raises(confluent_kafka.KafkaException) as refused:
            made.result(60)
        assert refused.value.args[0].code() == confluent_kafka.KafkaError.POLICY_VIOLATION
        failures: list[Any] = []
        producer = confluent_kafka.Producer(config)
        producer.produce("t", b"x" * 2000, on_delivery=lambda failure, _: failures.append(failure.code()))
        producer.flush(60)
        assert failures == [confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE]


def test_what_members_say_again_is_not_counted_twice() -> None:
    asked = Asked(max_member_bytes=100)
    _, first = asked.join("one", metadata=b"x" * 60)
    for _ in range(9):
        assert asked.join("one", first, metadata=b"y" * 40)[0] is ErrorCode.NONE
    assert asked.join("two", metadata=b"x" * 60)[0] is ErrorCode.NONE
