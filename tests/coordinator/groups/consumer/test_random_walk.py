"""The consumer group under a random walk: whatever members do, and whenever, some things always hold."""

from __future__ import annotations

from typing import Any

from consumer_groups import Client, Driver, FakeTopics
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from seeds import random_walk

from loadwise.coordinator.groups.consumer.group import ConsumerGroup
from loadwise.coordinator.groups.consumer.state import ConsumerGroupState
from loadwise.coordinator.groups.consumer_records import LEFT_FOR_NOW, ConsumerRecord, MemberState
from loadwise.coordinator.groups.events import ExpireSession, ForceRebalance, Leave, Leaver
from loadwise.coordinator.groups.topic_view import fingerprint
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode

IDS = [f"m{number}" for number in range(6)]
TOPICS = ["t", "u", "v"]
SUBSCRIPTIONS = st.one_of(
    st.fixed_dictionaries({"topics": st.lists(st.sampled_from(TOPICS), unique=True)}),
    st.fixed_dictionaries({"topics": st.just([]), "regex": st.sampled_from(["[tu]", ".*", "none"])}),
)
INSTANCES = {"m4": "i", "m5": "i"}  # two that take turns in one place
ASSIGNORS = st.sampled_from([None, "uniform", "range", "sticky", "weighted"])
PARTITIONS = st.tuples(st.sampled_from(TOPICS), st.integers(0, 3))
RECORDS = st.dictionaries(PARTITIONS, st.sampled_from([0, 1, 500]))


class Walk(RuleBasedStateMachine):
    """Members that join, beat, resubscribe, fall silent, leave and come back; topics that come, grow and go."""

    @initialize(interval=st.sampled_from([0, 0, 100]), max_size=st.sampled_from([3, 100]))
    def start(self, interval: int, max_size: int) -> None:
        self.driver = Driver(
            FakeTopics(t=4, u=3),
            assignment_interval_ms=interval,
            session_timeout_ms=1000,
            load_interval_ms=200,
            max_size=max_size,
        )
        self.clients: dict[str, Client] = {}
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    # ---- what may happen ----

    @rule(member_id=st.sampled_from(IDS), subscription=SUBSCRIPTIONS, assignor=ASSIGNORS)
    def join(self, member_id: str, subscription: dict[str, Any], assignor: str | None) -> None:
        said = subscription | {"assignor": assignor, "rebalance_timeout_ms": 300}
        client = self.driver.client(member_id, instance_id=INSTANCES.get(member_id), **said)
        self._beat(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        self._beat(self._one(data))

    @precondition(lambda self: self.clients)
    @rule()
    def all_beat(self) -> None:
        for client in list(self.clients.values()):
            self._beat(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def an_answer_is_lost(self, data: st.DataObject) -> None:
        client = self._one(data)
        epoch, owned, to_report = client.epoch, client.owned, client.to_report
        self._beat(client)
        client.epoch, client.owned, client.to_report = epoch, owned, to_report
        self._beat(client, **client.said, owned=owned)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), subscription=SUBSCRIPTIONS)
    def resubscribe(self, data: st.DataObject, subscription: dict[str, Any]) -> None:
        client = self._one(data)
        client.said |= {"regex": ""} | subscription
        self._beat(client, **client.said)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), for_now=st.booleans())
    def leave(self, data: st.DataObject, for_now: bool) -> None:
        client = self._one(data)
        instance = client.said["instance_id"]
        self.driver.beat(client.member_id, -2 if for_now and instance else -1, instance_id=instance)
        del self.clients[client.member_id]

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def fall_silent(self, data: st.DataObject) -> None:
        del self.clients[self._one(data).member_id]

    @rule(member_id=st.sampled_from(IDS))
    def be_removed(self, member_id: str) -> None:
        self.driver.handle(Leave(token=next(self.driver.tokens), leavers=[Leaver(member_id, None)]))

    @rule(member_id=st.sampled_from(IDS))
    def be_expired(self, member_id: str) -> None:
        self.driver.handle(ExpireSession(member_id=member_id))

    @rule()
    def be_forced(self) -> None:
        self.driver.handle(ForceRebalance())

    @rule(come=RECORDS, committed=st.sets(PARTITIONS))
    def records_come_and_are_processed(self, come: dict[tuple[str, int], int], committed: set[tuple[str, int]]) -> None:
        loads = self.driver.loads
        for partition, records in come.items():
            loads.ends[partition] = loads.ends.get(partition, 0) + records
        for partition in committed & loads.ends.keys():
            loads.committed[partition] = loads.ends[partition]

    @rule(name=st.sampled_from(TOPICS), more=st.integers(1, 3))
    def a_topic_grows(self, name: str, more: int) -> None:
        topic = self.driver.topics.get(name)
        self.driver.topics.set(name, more + (0 if topic is None else len(topic.partitions)))

    @rule(name=st.sampled_from(TOPICS))
    def a_topic_goes(self, name: str) -> None:
        if self.driver.topics.get(name) is not None:
            self.driver.topics.delete(name)

    @rule(ms=st.sampled_from([1, 50, 299, 700]))
    def time_goes_on(self, ms: int) -> None:
        self.driver.wait(ms)

    @rule()
    def a_restart(self) -> None:
        records = [record for record in self.driver.journal if isinstance(record, ConsumerRecord)]
        group = self.driver.group
        replayed = ConsumerGroup.replay(
            "g", records, self.driver.topics, self.driver.now_ms, group.limits, loads=self.driver.loads
        )
        before, after = set(map(repr, group.hard_state.records())), set(map(repr, replayed.hard_state.records()))
        assert after == before
        assert replayed.state is group.state
        self.driver.group = replayed

    # ---- what always holds ----

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        seen: set[tuple[Any, int]] = set()
        for member in self.driver.group.members.values():
            for topic_id, numbers in member.held().items():
                for number in numbers:
                    assert (topic_id, number) not in seen
                    assert self.driver.group.hard_state.holder(topic_id, number) == member.member_id
                    seen.add((topic_id, number))

    @invariant()
    def clients_never_share_a_partition(self) -> None:
        """By what they were told, too: among those whom the group still knows, at the epoch that it knows."""
        seen: set[tuple[Any, int]] = set()
        for client in self.clients.values():
            member = self.driver.group.members.get(client.member_id)
            if member is None or client.epoch != member.current.epoch:
                continue
            for topic_id, numbers in client.owned.items():
                for number in numbers:
                    assert (topic_id, number) not in seen
                    seen.add((topic_id, number))

    @invariant()
    def epochs_never_fall(self) -> None:
        state = self.driver.group.hard_state
        assert state.epoch >= self.epochs[0]
        assert state.target_epoch >= self.epochs[1]
        assert state.target_epoch <= state.epoch
        self.epochs = (state.epoch, state.target_epoch)

    @invariant()
    def the_state_fits_the_members(self) -> None:
        group = self.driver.group
        for member in group.members.values():
            assert member.current.epoch <= group.hard_state.target_epoch
            if member.current.epoch == LEFT_FOR_NOW:
                assert not member.current.pending_revocation, (
                    "it cannot give anything up; Kafka leaves its state as it was"
                )
            else:
                assert bool(member.current.pending_revocation) == (
                    member.current.state is MemberState.UNREVOKED_PARTITIONS
                )
        reconciled = [member.is_reconciled_to(group.hard_state.target_epoch) for member in group.members.values()]
        if group.state is ConsumerGroupState.STABLE:
            assert all(reconciled)
        assert (group.state is ConsumerGroupState.EMPTY) == (not group.members)
        assert len(group.members) <= group.limits.max_size

    @invariant()
    def the_fingerprint_is_that_of_now(self) -> None:
        state, topics = self.driver.group.hard_state, self.driver.topics
        assert whole(state.fingerprint(topics)) == whole(fingerprint(state.topics(), topics))

    @invariant()
    def a_deadline_lies_ahead(self) -> None:
        deadline = self.driver.group.next_deadline_ms
        assert (deadline is None) == (not self.driver.group.members)
        assert deadline is None or deadline > self.driver.now_ms

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self._everybody_gets_what_it_should()
        for _ in range(100):
            deadline = self.driver.group.next_deadline_ms
            if deadline is None:
                break
            self.driver.wait(deadline - self.driver.now_ms)
        assert not self.driver.group.members, "time alone did not drain the group"

    def _everybody_gets_what_it_should(self) -> None:
        for member_id in [each for each in self.driver.group.members if each not in self.clients]:
            self.driver.handle(ExpireSession(member_id=member_id))
        for _ in range(30):
            self.driver.wait(50)
            for client in list(self.clients.values()):
                self._beat(client)
        group, state = self.driver.group, self.driver.group.hard_state
        assert group.state in {ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY}
        for member in group.members.values():
            assert {topic: frozenset(each) for topic, each in member.current.assigned.items()} == state.target(
                member.member_id
            )
        wanted = [state.subscribed_topics(member.subscription) for member in group.members.values()]
        for topic in self.driver.topics:
            if any(topic.name in each for each in wanted):
                assert all(state.holder(topic.id, number) is not None for number in range(len(topic.partitions)))

    # ---- how it is driven ----

    def _one(self, data: st.DataObject) -> Client:
        return self.clients[data.draw(st.sampled_from(sorted(self.clients)))]

    def _beat(self, client: Client, **changes: Any) -> None:
        reply = client.beat(**changes)
        match reply.error:
            case ErrorCode.NONE:
                self.clients[client.member_id] = client
            case ErrorCode.FENCED_MEMBER_EPOCH | ErrorCode.UNKNOWN_MEMBER_ID if client.epoch:
                client.epoch, client.owned, client.to_report = 0, {}, False  # it joins again
                self._beat(client)
            case _:
                assert reply.error in {
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    ErrorCode.FENCED_INSTANCE_ID,
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                }
                self.clients.pop(client.member_id, None)


TestWalk = random_walk(Walk, walks=30, steps=40)
