"""Streams groups among the others: which ids they can have, what they leave behind, and what a replay gives."""

from __future__ import annotations

from itertools import count
from typing import Any

from classic_events import join_event
from commits import commit
from consumer_groups import FakeTopics
from streams_groups import COUNTING, part, topology

from loadwise.coordinator.groups.events import Committer, ConsumerHeartbeat, Heartbeat, Leave, Leaver
from loadwise.coordinator.groups.kind import GroupKind
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.records import GroupRecord
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.settings import BrokerSettings
from loadwise.coordinator.share.heartbeat import ShareHeartbeat
from loadwise.coordinator.streams.heartbeat import StreamsHeartbeat
from loadwise.coordinator.streams.limits import StreamsGroupLimits
from loadwise.coordinator.streams.topology import NO_TASKS, Topology
from loadwise.protocol.error_codes import ErrorCode

P0 = Partition("t", 0)
TOKENS = count(1)


def kinds(cluster: Cluster) -> list[GroupKind]:
    """The kinds of a cluster whose groups are not asked."""
    return [each.group_kind for each in cluster.features if each.group_kind is not None]


def new_groups(**limits: Any) -> Groups:
    settings = BrokerSettings(limits=[StreamsGroupLimits(**limits)])
    return Groups(topics=FakeTopics(t=2), kinds=kinds(Router(settings).cluster))


def ask(groups: Groups, event: Any, now_ms: int = 0) -> Any:
    (reply,) = groups.handle("g", event, now_ms)
    return reply.body


def beat(groups: Groups, epoch: int = 0, application: Topology | None = COUNTING, now_ms: int = 0) -> Any:
    joins = {"topology": application, "owned": NO_TASKS, "process_id": "p", "rebalance_timeout_ms": 100}
    event = StreamsHeartbeat(token=next(TOKENS), member_id="m", epoch=epoch, **({} if epoch else joins))
    return ask(groups, event, now_ms)


def join(groups: Groups) -> Any:
    return ask(groups, join_event(next(TOKENS), fresh_member_id="fresh", can_skip_assignment=True))


def type_of(groups: Groups) -> str | None:
    group = groups.get("g")
    return None if group is None else group.type


def test_it_takes_the_place_of_a_classic_group_without_members_and_its_offsets() -> None:
    groups = new_groups()
    assert commit(groups, "g", Committer(), {P0: CommittedOffset(7, 0, "")}) is ErrorCode.NONE
    assert type_of(groups) == "classic"
    unsound = topology(part("0", "t"), part("0", "t"))
    assert beat(groups, application=unsound).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert type_of(groups) == "classic", "its first member was refused"
    assert beat(groups).error is ErrorCode.NONE
    assert type_of(groups) == "streams"
    assert groups.offsets.of("g")[P0].offset == 7


def test_after_a_restart_it_is_not_the_classic_group_that_it_replaced() -> None:
    groups = new_groups()
    joined = join(groups)
    ask(groups, Leave(token=next(TOKENS), leavers=[Leaver(joined.member_id, None)]))
    assert any(isinstance(record, GroupRecord) for record in groups.journal.of_group("g"))
    assert beat(groups).error is ErrorCode.NONE
    assert not any(isinstance(record, GroupRecord) for record in groups.journal.of_group("g"))


def test_a_classic_group_takes_its_place_when_nobody_is_left() -> None:
    groups = new_groups()
    beat(groups)
    assert join(groups).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    beat(groups, -1)
    assert join(groups).error is ErrorCode.NONE
    assert type_of(groups) == "classic"
    assert beat(groups).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_members_of_other_kinds_are_refused() -> None:
    groups = new_groups()
    assert beat(groups, 3).message == "Streams group g not found."
    assert beat(groups, -1).message == "Group g not found."
    beat(groups)
    other = ask(groups, ConsumerHeartbeat(token=1, member_id="n", epoch=0, topics=["t"]))
    assert (other.error, other.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group.")
    other = ask(groups, ShareHeartbeat(token=1, member_id="n", epoch=0, topics=["t"]))
    assert (other.error, other.message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a share group.")
    heartbeat = Heartbeat(token=1, member_id="m", instance_id=None, generation=2)
    assert ask(groups, heartbeat).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_its_limits_are_those_of_its_id_at_the_time() -> None:
    cluster = Router(BrokerSettings(limits=[StreamsGroupLimits(max_size=1)])).cluster
    groups = Groups(topics=FakeTopics(t=2), kinds=kinds(cluster))
    assert beat(groups).error is ErrorCode.NONE
    assert beat(groups).error is ErrorCode.GROUP_MAX_SIZE_REACHED, "as in Kafka, for a member that joins again, too"
    cluster.settings = BrokerSettings(limits=[StreamsGroupLimits(max_size=2)])
    assert beat(groups).error is ErrorCode.NONE


def test_a_session_that_ends_leaves_an_empty_group_that_is_deleted_with_its_offsets() -> None:
    groups = new_groups(session_timeout_ms=100)
    beat(groups)
    groups.expire(100)
    group = groups.get("g")
    assert group is not None
    assert (group.state.value, group.generation) == ("Empty", 3)
    error, _ = groups.delete("g", 100)
    assert (error, type_of(groups), len(groups.journal)) == (ErrorCode.NONE, None, 0)


def test_another_broker_takes_it_over_as_it_is() -> None:
    groups = new_groups()
    beat(groups)
    before = groups.get("g")
    groups.reload("g", 0)
    after = groups.get("g")
    assert before is not None
    assert after is not None
    assert after is not before
    assert (after.members, after.generation, after.records()) == (before.members, before.generation, before.records())
    assert after.configured is None, "it looks at the topics itself"
    assert beat(groups, 2).error is ErrorCode.NONE
