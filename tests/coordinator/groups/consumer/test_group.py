"""The consumer group under a fake clock: one test a rule, with Kafka's own error code in each case."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_groups import Client, Driver, FakeTopics, by_name

from loadwise.coordinator.errors import BadAssignorError
from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.consumer.state import ConsumerGroupState, ConsumerState
from loadwise.coordinator.groups.consumer_records import ConsumerRecord, MemberState, Tombstone
from loadwise.coordinator.groups.events import Committer, Delete, ExpireSession, ForceRebalance, Leave, Leaver
from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode


def pair(**limits: Any) -> tuple[Driver, Client, Client]:
    """Two members that have half of topic t each, at epoch 3."""
    driver = Driver(**limits)
    first, second = driver.client("a"), driver.client("b")
    first.beat()
    driver.settle(first, second)
    return driver, first, second


def test_one_member_gets_everything_at_once() -> None:
    driver = Driver()
    client = driver.client("a")
    reply = client.beat()
    assert (reply.error, reply.epoch, reply.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 500)
    assert client.partitions == {"t": [0, 1, 2, 3, 4, 5]}
    assert client.beat().assigned is None
    assert driver.group.state is ConsumerGroupState.STABLE


def test_nothing_is_given_before_it_was_given_up() -> None:
    driver = Driver()
    first, second = driver.client("a"), driver.client("b")
    first.beat()
    joined = second.beat()
    assert (joined.epoch, joined.assigned) == (3, {}), "b is at the target's epoch, and waits"
    assert driver.group.hard_state.members["b"].current.state is MemberState.UNRELEASED_PARTITIONS
    told = first.beat()
    assert told.epoch == 2, "a stays at its epoch until it has given up"
    assert first.count == 3
    assert driver.group.hard_state.members["a"].current.state is MemberState.UNREVOKED_PARTITIONS
    assert second.beat().assigned is None
    assert driver.group.state is ConsumerGroupState.RECONCILING
    assert first.beat().epoch == 3, "it says what it owns now"
    assert second.beat().assigned is not None
    assert (first.count, second.count) == (3, 3)
    assert driver.group.state is ConsumerGroupState.STABLE


def test_a_member_that_does_not_say_what_it_owns_does_not_get_on() -> None:
    driver = Driver()
    first, second = driver.client("a"), driver.client("b")
    first.beat()
    second.beat()
    first.beat()
    first.to_report = False
    assert first.beat().epoch == 2
    first.to_report = True
    assert first.beat().epoch == 3


def test_who_leaves_makes_room() -> None:
    driver, first, second = pair()
    left = driver.beat("b", -1)
    assert (left.error, left.epoch) == (ErrorCode.NONE, -1)
    assert driver.group.state is ConsumerGroupState.ASSIGNING
    first.beat()
    assert (first.epoch, first.count) == (4, 6)
    assert second.beat().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_are_fenced() -> None:
    driver, first, _ = pair()
    assert driver.beat("a", 4).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("a", 2).error is ErrorCode.FENCED_MEMBER_EPOCH
    missed = driver.beat("a", 2, owned=first.owned)
    assert (missed.error, missed.epoch) == (ErrorCode.NONE, 3), "it has missed an answer"
    more = {topic: [*numbers, 5, 4, 3, 2, 1, 0] for topic, numbers in first.owned.items()}
    assert driver.beat("a", 2, owned=more).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.beat("x", -1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fenced_member_joins_again_and_keeps_its_place() -> None:
    driver, first, _ = pair()
    first.epoch = 0
    again = first.beat()
    assert (again.epoch, first.count) == (3, 3)
    assert driver.group.hard_state.epoch == 3


def test_a_full_request_gets_the_assignment_again() -> None:
    _, first, _ = pair()
    full = first.beat(rebalance_timeout_ms=5000, topics=["t"], owned=first.owned)
    assert full.assigned is not None


def test_silence_ends_a_session() -> None:
    driver, first, second = pair(session_timeout_ms=1000)
    driver.now_ms += 600
    first.beat()
    driver.wait(400)
    assert second.beat().error is ErrorCode.UNKNOWN_MEMBER_ID
    first.beat()
    assert first.count == 6


def test_a_member_that_is_slow_to_give_up_is_put_out() -> None:
    driver = Driver()
    first, second = driver.client("a", rebalance_timeout_ms=100), driver.client("b")
    first.beat()
    second.beat()
    first.beat()
    first.to_report = False
    driver.wait(99)
    assert not first.beat().error
    driver.wait(1)
    assert first.beat().error is ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert second.count == 6


def test_the_time_to_give_up_ends_when_it_was_given_up() -> None:
    driver = Driver()
    first, second = driver.client("a", rebalance_timeout_ms=100), driver.client("b")
    first.beat()
    second.beat()
    driver.settle(first, second)
    driver.wait(1000)
    assert not first.beat().error


def test_a_topic_that_grows_is_assigned_anew() -> None:
    driver, first, second = pair()
    driver.topics.set("t", 8)
    driver.settle(first, second)
    assert (first.epoch, first.count, second.count) == (4, 4, 4)
    driver.topics.set("other", 3)
    driver.settle(first, second)
    assert driver.group.hard_state.epoch == 4, "nobody reads that one"


def test_a_deleted_topic_is_given_up() -> None:
    driver = Driver(FakeTopics(t=2, u=2))
    client = driver.client("a", topics=["t", "u"])
    client.beat()
    driver.topics.delete("u")
    driver.settle(client)
    assert client.partitions == {"t": [0, 1]}
    assert by_name(driver.topics, driver.group.hard_state.members["a"].held()) == {"t": [0, 1]}


def test_a_changed_subscription_takes_effect_at_once() -> None:
    driver = Driver(FakeTopics(t=2, u=2), assignment_interval_ms=10_000)
    client = driver.client("a", topics=["t", "u"])
    client.beat()
    reply = client.beat(topics=["u"])
    assert reply.epoch == 2, "new targets are not due yet"
    assert client.partitions == {"u": [0, 1]}
    driver.now_ms += 10_000
    driver.settle(client)
    assert (client.epoch, client.partitions) == (3, {"u": [0, 1]})


def test_targets_are_made_once_an_interval() -> None:
    driver = Driver(assignment_interval_ms=1000)
    clients = [driver.client(name) for name in "abc"]
    for client in clients:
        client.beat()
    assert (driver.group.hard_state.epoch, driver.group.hard_state.target_epoch) == (4, 2)
    driver.now_ms += 1000
    driver.settle(*clients)
    assert [client.count for client in clients] == [2, 2, 2]
    assert driver.group.hard_state.target_epoch == 4


def test_many_who_join_a_large_group_together_share_targets() -> None:
    driver = Driver(FakeTopics(t=300))
    clients = [driver.client(f"member-{number:03}") for number in range(150)]
    for client in clients:
        client.beat()
    assert (driver.group.hard_state.epoch, driver.group.hard_state.target_epoch) == (151, 101)
    driver.now_ms += 39
    clients[0].beat()
    assert driver.group.hard_state.target_epoch == 101, "40 ms for 150 members and 300 partitions"
    driver.now_ms += 1
    driver.settle(*clients)
    assert driver.group.hard_state.target_epoch == 151
    assert {client.count for client in clients} == {2}


def test_a_group_has_a_largest_size() -> None:
    driver, first, _ = pair(max_size=2)
    assert driver.client("c").beat().error is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.epoch = 0
    assert not first.beat().error


class TestStaticMembers:
    def test_an_instance_is_let_go_only_by_its_owner(self) -> None:
        driver = Driver()
        owner = driver.client("a", instance_id="i")
        owner.beat()
        assert driver.client("b", instance_id="i").beat().error is ErrorCode.UNRELEASED_INSTANCE_ID
        assert driver.beat("b", 1, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
        assert driver.beat("b", -2, instance_id="i").error is ErrorCode.FENCED_INSTANCE_ID
        assert driver.beat("a", 1, instance_id="j").error is ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.beat("a", -2, instance_id="j").error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_coming_back_costs_no_rebalance(self) -> None:
        driver = Driver()
        static, other = driver.client("a", instance_id="i"), driver.client("b")
        static.beat()
        driver.settle(static, other)
        had = static.partitions
        left = driver.beat("a", -2, instance_id="i")
        assert (left.error, left.epoch) == (ErrorCode.NONE, -2)
        back = driver.client("a2", instance_id="i")
        back.beat()
        assert (back.partitions, back.epoch, driver.group.hard_state.epoch) == (had, 3, 3)
        assert static.beat().error is ErrorCode.FENCED_INSTANCE_ID
        driver.settle(back, other)

    def test_who_does_not_come_back_is_put_out(self) -> None:
        driver = Driver(session_timeout_ms=1000)
        static, other = driver.client("a", instance_id="i"), driver.client("b")
        static.beat()
        driver.settle(static, other)
        driver.beat("a", -2, instance_id="i")
        driver.now_ms += 999
        other.beat()
        assert other.count == 3
        driver.wait(1)
        driver.settle(other)
        assert other.count == 6

    def test_leaving_for_good_is_leaving(self) -> None:
        driver = Driver()
        static, other = driver.client("a", instance_id="i"), driver.client("b")
        static.beat()
        driver.settle(static, other)
        driver.beat("a", -1, instance_id="i")
        driver.settle(other)
        assert other.count == 6


class TestRegularExpressions:
    def test_topics_that_match_come_and_go(self) -> None:
        driver = Driver(FakeTopics(**{"flights.nyc": 2, "trains": 2}))
        client = driver.client("a", topics=[], regex="flights.*")
        client.beat()
        assert client.partitions == {"flights.nyc": [0, 1]}
        driver.topics.set("flights.sfo", 1)
        driver.settle(client)
        assert client.partitions == {"flights.nyc": [0, 1], "flights.sfo": [0]}
        driver.topics.delete("flights.nyc")
        driver.settle(client)
        assert client.partitions == {"flights.sfo": [0]}

    def test_names_and_an_expression_add_up(self) -> None:
        driver = Driver(FakeTopics(a1=1, a2=1, b=1))
        client = driver.client("m", topics=["b"], regex="a.")
        client.beat()
        assert client.partitions == {"a1": [0], "a2": [0], "b": [0]}
        client.beat(regex="", topics=["b"])
        driver.settle(client)
        assert client.partitions == {"b": [0]}
        assert driver.group.hard_state.regexes == {}

    @pytest.mark.parametrize("regex", ["(", "a**", r"(a)\1", "(?=a)", "a" * 5000])
    def test_what_re2_does_not_read_is_refused(self, regex: str) -> None:
        driver = Driver()
        refused = driver.client("a", topics=[], regex=regex).beat()
        assert refused.error is ErrorCode.INVALID_REGULAR_EXPRESSION
        assert refused.message
        assert not driver.records

    def test_the_whole_name_has_to_match(self) -> None:
        driver = Driver(FakeTopics(ab=1, b=1, bb=1))
        client = driver.client("m", topics=[], regex="b|bb")
        client.beat()
        assert sorted(client.partitions) == ["b", "bb"]

    def test_topics_that_the_client_may_not_describe_are_left_out(self) -> None:
        driver = Driver(FakeTopics(mine=2, others=2))
        client = driver.client("a", topics=[], regex=".*")
        client.beat(may_describe=lambda name: name.startswith("m"))
        assert client.partitions == {"mine": [0, 1]}
        second = driver.client("b", topics=[], regex=".*")
        second.beat()
        driver.settle(client, second)
        assert {*client.partitions, *second.partitions} == {"mine"}, "it was looked at with the rights of the first"
        driver.topics.set("more", 1)
        client.beat(may_describe=lambda name: name.startswith("m"))
        driver.settle(client, second)
        assert {*client.partitions, *second.partitions} == {"mine", "more"}
        driver.topics.set("moreover", 1)
        driver.beat("a", -1)
        assert driver.group.hard_state.regexes == {".*": {"mine", "more"}}, "nobody has asked for what is new"

    def test_topics_that_the_client_may_describe_by_now_come_after_a_while(self) -> None:
        driver = Driver(FakeTopics(mine=2, others=2), regex_refresh_interval_ms=20_000)
        client = driver.client("a", topics=[], regex=".*")
        client.beat(may_describe=lambda name: name == "mine")
        driver.wait(19_999)
        client.beat()
        assert client.partitions == {"mine": [0, 1]}
        epoch = driver.group.hard_state.epoch
        driver.wait(1)
        client.beat()
        assert client.partitions == {"mine": [0, 1], "others": [0, 1]}
        driver.wait(20_000)
        client.beat()
        assert driver.group.hard_state.epoch == epoch + 1, "nothing is new the next time"


class TestAssignors:
    def test_most_members_decide(self) -> None:
        driver = Driver(FakeTopics(t=3, u=3))
        clients = [driver.client(name, topics=["t", "u"], assignor="range") for name in "ab"]
        clients.append(driver.client("c", topics=["t", "u"], assignor="uniform"))
        for client in clients:
            client.beat()
        driver.settle(*clients)
        assert driver.group.assignor.name == "range"
        assert [client.partitions for client in clients] == [{"t": [n], "u": [n]} for n in range(3)]

    def test_the_first_is_for_those_who_do_not_ask(self) -> None:
        driver = Driver(FakeTopics(t=3, u=3), assignors=("range",))
        clients = [driver.client(name, topics=["t", "u"]) for name in "ab"]
        clients[0].beat()
        driver.settle(*clients)
        assert [client.partitions for client in clients] == [{"t": [0, 1], "u": [0, 1]}, {"t": [2], "u": [2]}]


@pytest.mark.parametrize(("assignor", "is_local"), [("sticky", True), ("weighted", True), ("uniform", False)])
def test_ours_prefer_partitions_on_the_members_racks(assignor: str, is_local: bool) -> None:
    driver = Driver(FakeTopics(t=4))
    clients = [driver.client(f"m{number}", rack=f"r{number}", assignor=assignor) for number in range(2)]
    for client in clients:
        client.beat()
    driver.settle(*clients)
    assert ([client.partitions for client in clients] == [{"t": [0, 2]}, {"t": [1, 3]}]) is is_local


@pytest.mark.parametrize("names", [(), ("best",), ("uniform", "best")])
def test_only_assignors_that_are_there_can_be_offered(names: tuple[str, ...]) -> None:
    with pytest.raises(BadAssignorError, match="uniform, range, sticky, weighted"):
        ConsumerGroupLimits(assignors=names)


class TestOffsets:
    def test_a_commit_needs_the_members_epoch(self) -> None:
        driver, first, second = pair()
        mine, others = (Partition("t", each.partitions["t"][0]) for each in (first, second))

        def commits(member_id: str, epoch: int, *partitions: Partition, knows_epochs: bool = True) -> ErrorCode:
            who = Committer(member_id=member_id, generation=epoch, knows_epochs=knows_epochs)
            return driver.group.validate_offset_commit(who, partitions)

        assert commits("a", 3, mine, others) is ErrorCode.NONE, "the group does not check whose they are"
        assert commits("a", 4, mine) is ErrorCode.STALE_MEMBER_EPOCH
        assert commits("a", 1, mine) is ErrorCode.STALE_MEMBER_EPOCH
        assert commits("b", 2, others) is ErrorCode.STALE_MEMBER_EPOCH, "it was assigned at epoch 3"
        assert commits("", -1, mine) is ErrorCode.UNKNOWN_MEMBER_ID
        assert commits("a", 3, mine, knows_epochs=False) is ErrorCode.UNSUPPORTED_VERSION

    def test_a_commit_may_have_any_epoch_since_the_partition_was_assigned(self) -> None:
        driver, first, second = pair()
        mine, others = (Partition("t", each.partitions["t"][0]) for each in (first, second))
        at_2 = Committer(member_id="a", generation=2)
        assert driver.group.members["a"].current.epoch == 3
        assert driver.group.validate_offset_commit(at_2, [mine]) is ErrorCode.NONE
        assert driver.group.validate_offset_commit(at_2, [mine, others]) is ErrorCode.STALE_MEMBER_EPOCH
        assert driver.group.validate_offset_commit(at_2, [Partition("none", 0)]) is ErrorCode.STALE_MEMBER_EPOCH

    def test_an_administrator_commits_for_an_empty_group(self) -> None:
        driver, _, _ = pair()
        driver.beat("a", -1)
        driver.beat("b", -1)
        assert driver.group.validate_offset_commit(Committer(), [Partition("t", 0)]) is ErrorCode.NONE
        member = Committer(member_id="a", generation=0)
        assert driver.group.validate_offset_commit(member, [Partition("t", 0)]) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_reading_offsets_needs_the_epoch_too(self) -> None:
        driver, _, _ = pair()
        assert driver.group.validate_offset_fetch(None, -1) is ErrorCode.NONE
        assert driver.group.validate_offset_fetch("a", 3) is ErrorCode.NONE
        assert driver.group.validate_offset_fetch("a", 2) is ErrorCode.STALE_MEMBER_EPOCH
        assert driver.group.validate_offset_fetch("x", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_only_an_empty_group_is_deleted() -> None:
    driver, _, _ = pair()
    assert driver.handle(Delete(token=900)).error is ErrorCode.NON_EMPTY_GROUP
    driver.beat("a", -1)
    driver.beat("b", -1)
    assert driver.group.state is ConsumerGroupState.EMPTY
    assert driver.handle(Delete(token=901)).error is ErrorCode.NONE
    assert driver.handle(Delete(token=902)).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_restart_in_mid_rebalance_goes_on_from_there() -> None:
    driver = Driver(FakeTopics(t=6), session_timeout_ms=1000)
    first, second = driver.client("a"), driver.client("b", topics=[], regex="t")
    first.beat()
    second.beat()
    first.beat()
    records = [record for record in driver.journal if isinstance(record, ConsumerRecord)]
    driver.group = ConsumerGroup.replay("g", records, driver.topics, driver.now_ms, driver.group.limits)
    driver.settle(first, second)
    assert (first.count, second.count, driver.group.hard_state.epoch) == (3, 3, 3)
    driver.wait(1000)
    assert not driver.group.hard_state.members, "sessions went on as well"


def test_a_deleted_assignment_is_as_if_it_had_never_been_written() -> None:
    driver, _, _ = pair()
    state, rebuilt = driver.group.hard_state, ConsumerState("g")
    tombstone = Tombstone(group_id="g", key=("current", "a"))
    for record in driver.journal:
        if isinstance(record, ConsumerRecord) and record.key != tombstone.key:
            whole(rebuilt.apply(record))
    whole(state.apply(tombstone))
    assert state.members == rebuilt.members
    assert state.name is rebuilt.name is ConsumerGroupState.RECONCILING
    assert state.holder(driver.topics.id_of("t"), 0) == rebuilt.holder(driver.topics.id_of("t"), 0)


def test_an_administrator_removes_members_of_either_kind() -> None:
    driver, _, _ = pair()
    static = driver.client("c", instance_id="i")
    static.beat()
    leavers = [Leaver("a", None), Leaver("x", None), Leaver("", "i"), Leaver("", "j"), Leaver("b", "i")]
    epoch = driver.group.generation
    left = driver.handle(Leave(token=900, leavers=leavers)).leavers
    assert [each.error for each in left] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
    ]
    assert (list(driver.group.members), driver.group.generation) == (["b"], epoch + 1)


def test_a_test_ends_a_session_and_forces_new_targets() -> None:
    driver, first, second = pair()
    driver.handle(ForceRebalance())
    assert driver.group.state is ConsumerGroupState.ASSIGNING
    driver.settle(first, second)
    assert (first.epoch, first.count) == (4, 3)
    driver.handle(ExpireSession(member_id="b"))
    driver.settle(first)
    assert (first.epoch, first.count) == (5, 6)


def test_a_group_tells_how_it_came_to_be_what_it_is() -> None:
    driver, first, _ = pair()
    driver.beat("b", -1)
    first.beat()
    assert [(each.before, each.after, each.generation, each.members) for each in driver.transitions] == [
        ("Empty", "Stable", 2, 1),
        ("Stable", "Reconciling", 3, 2),
        ("Reconciling", "Stable", 3, 2),
        ("Stable", "Assigning", 4, 1),
        ("Assigning", "Stable", 4, 1),
    ]
    assert driver.transitions[3].reason == "b left"
