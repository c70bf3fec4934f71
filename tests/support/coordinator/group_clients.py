"""Clients of both group protocols that behave as real ones do, on groups without a network and under a fake clock.

A random walk and a soak drive them. `World` checks after every event what has to hold always.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from classic_events import join_event, sync_event
from consumer_groups import FakeTopics

from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits
from loadwise.coordinator.groups.effects import JoinReply, Reply
from loadwise.coordinator.groups.events import (
    CommitOffsets,
    Committer,
    ConsumerHeartbeat,
    Event,
    ExpireSession,
    ForceRebalance,
    Heartbeat,
    Leave,
    Leaver,
    Protocol,
)
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.error_codes import ErrorCode

TOPICS = {"t": 6, "u": 3, "v": 1}
HOUR_MS = 3_600_000


@dataclass
class FakeLog:
    start_offset: int = 0
    end_offset: int = 0

    def end_before(self, _timestamp_ms: int, /) -> int | None:
        return None


class FakeLogs:
    """A log for each partition; they grow at different rates."""

    def __init__(self) -> None:
        self.logs: dict[Partition, FakeLog] = {}

    def log(self, name: str, partition: int, /) -> FakeLog:
        return self.logs.setdefault(Partition(name, partition), FakeLog())


class World:
    """Groups, their clients, a clock, and what always holds."""

    def __init__(self, random: Random, **limits: Any) -> None:
        self.random = random
        self.topics = FakeTopics(**TOPICS)
        self.logs = FakeLogs()
        self.limits = GroupLimits(**limits)
        self.consumer_limits = ConsumerGroupLimits(session_timeout_ms=45_000, assignment_interval_ms=1000)
        self.groups = Groups(self.limits, self.consumer_limits, self.topics, self.logs)
        self.now_ms = 1_000_000
        self.tokens = count(1)
        self.waiting: dict[int, ClassicClient] = {}
        self.answers: dict[int, Any] = {}
        self._arriving: deque[tuple[ClassicClient, int, Any]] = deque()
        self.committed: dict[str, dict[Partition, int]] = {}
        self.generations: dict[str, int] = {}
        self.seen: dict[str, int] = {}
        """How often something happened, so that a walk can show that it went everywhere."""

    def note(self, what: str) -> None:
        self.seen[what] = self.seen.get(what, 0) + 1

    # ---- what may happen ----

    def ask(self, group_id: str, event: Event, client: ClassicClient | None = None) -> Any:
        """Tell the groups; answers with what came for this event, None if its answer is still to come."""
        token = getattr(event, "token", None)
        if token is not None and client is not None:
            self.waiting[token] = client
        before = self.groups.get(group_id)
        was_empty = before is None or not before.members
        self._deliver(self.groups.handle(group_id, event, self.now_ms), own=token)
        after = self.groups.get(group_id)
        if before is not None and after is not None and before.type != after.type:
            if was_empty:
                self.generations.pop(group_id, None)  # the life of a group ends when nobody is in it, as in Kafka
            else:
                self.note(f"{before.type} group became a {after.type} group")
        self.check(group_id)
        answer = self.answers.pop(token, None) if token is not None else None
        self._arrive()
        return answer

    def pass_ms(self, ms: int) -> None:
        """Let time pass, with every deadline on the way."""
        end = self.now_ms + ms
        while (deadline := self.groups.next_deadline_ms) is not None and deadline <= end:
            self.now_ms = max(self.now_ms, deadline)
            self._deliver(self.groups.expire(self.now_ms))
            after = self.groups.next_deadline_ms
            assert after is None or after > self.now_ms, "a deadline that has passed was not served"
            for group_id in self.groups.all().keys() | self.generations.keys():
                self.check(group_id)
            self._arrive()
        self.now_ms = end
        for partition, log in self.logs.logs.items():
            log.end_offset += ms * (1 + 5 * partition.number) // 1000

    def be_late(self) -> None:
        """The timer comes late: requests come in at or after a deadline, and before what it is for has happened."""
        deadline = self.groups.next_deadline_ms
        if deadline is not None and deadline < self.now_ms + 60_000:
            self.note("late")
            self.now_ms = max(self.now_ms, deadline) + self.random.choice([0, 0, 500])

    def restart(self) -> None:
        """The coordinator ends and is rebuilt from its journal; connections end with it."""
        self.note("restart")
        self.check_replay()
        self.groups = self._replayed()
        for client in list(self.waiting.values()):
            client.lose_connection()
        self.waiting.clear()

    def move(self, group_id: str) -> None:
        """Another broker coordinates the group."""
        if self.groups.get(group_id) is not None:
            self.note("move")
            self._deliver(self.groups.reload(group_id, self.now_ms))
            self.check(group_id)
            self._arrive()

    def operate(self, group_id: str) -> None:
        """A test kicks, expires or forces."""
        group = self.groups.get(group_id)
        if group is None:
            return
        if group.members and self.random.random() < 0.5:
            member_id = self.random.choice(list(group.members))
            self.note("session ended by a test")
            self.ask(group_id, ExpireSession(member_id=member_id))
            after = self.groups.get(group_id)
            assert after is None or member_id not in after.members
        else:
            self.note("forced rebalance")
            self.ask(group_id, ForceRebalance())

    def commit(self, group_id: str, who: Committer, partitions: Sequence[Partition]) -> ErrorCode:
        offset = self.random.randrange(1_000_000)
        offsets = {each: CommittedOffset(offset, -1, "", self.now_ms) for each in partitions}
        token = next(self.tokens)
        self._deliver(
            self.groups.handle(group_id, CommitOffsets(token=token, who=who, offsets=offsets), self.now_ms), token
        )
        reply = self.answers.pop(token)
        if reply.error is ErrorCode.NONE:
            self.note("commit")
            self.committed.setdefault(group_id, {}).update(dict.fromkeys(partitions, offset))
        self.check(group_id)
        self._arrive()
        error: ErrorCode = reply.error
        return error

    def _deliver(self, replies: Sequence[Reply], own: int | None = None) -> None:
        for reply in replies:
            client = self.waiting.pop(reply.token, None)
            assert client is not None or reply.token == own, "a token was answered twice, or never given"
            assert reply.token not in self.answers
            if client is None:
                self.answers[reply.token] = reply.body
            else:
                self._arriving.append((client, reply.token, reply.body))

    def _arrive(self) -> None:
        """Let clients have the answers that are on their way, and ask what they ask next."""
        while self._arriving:
            client, token, body = self._arriving.popleft()
            client.answered(token, body)

    # ---- what always holds ----

    def check(self, group_id: str) -> None:
        """What holds after every event."""
        group = self.groups.get(group_id)
        if group is None:
            self.generations.pop(group_id, None)
            return
        assert group.generation >= self.generations.get(group_id, 0), "the generation fell"
        self.generations[group_id] = group.generation
        classic = self.groups.classic_group(group_id)
        if classic is not None:
            waiting = {token for token, client in self.waiting.items() if client.group_id == group_id}
            assert set(classic.waiting.values()) == waiting, "a client waits that the group does not know"
            assert classic.waiting.keys() <= classic.members.keys(), "one waits that is no member"

    def check_all(self) -> None:
        """What holds too, and takes longer to look at."""
        for group_id, group in self.groups.all().items():
            committed = {partition: offset.offset for partition, offset in self.groups.offsets.of(group_id).items()}
            assert committed == self.committed.get(group_id, {}), "an accepted commit was lost"
            if group.state is GroupState.PREPARING_REBALANCE:
                continue  # members give back what they had
            # Honest leaders give nothing to two members, and neither does the coordinator.
            owned = [
                (name, number)
                for member_id in group.members
                for name, numbers in (group.assignment(member_id) or {}).items()
                for number in numbers
            ]
            assert len(set(owned)) == len(owned), f"a partition has two owners in {group_id}"

    def check_replay(self) -> None:
        """What can be rebuilt from the journal is what there is, but for rebalances that are under way."""
        replayed = self._replayed()
        assert replayed.all().keys() == self.groups.all().keys()
        for group_id, live in self.groups.all().items():
            rebuilt = replayed.all()[group_id]
            assert rebuilt.type == live.type
            assert dict(replayed.offsets.of(group_id)) == dict(self.groups.offsets.of(group_id))
            if live.state in {GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE}:
                continue
            assert rebuilt.members.keys() == live.members.keys(), f"members of {group_id}"
            assert (rebuilt.state, rebuilt.generation) == (live.state, live.generation)
            assert set(map(repr, rebuilt.records())) == set(map(repr, live.records()))

    def _replayed(self) -> Groups:
        records = list(self.groups.journal)
        return Groups(self.limits, self.consumer_limits, self.topics, self.logs, records=records, now_ms=self.now_ms)

    def drain(self) -> None:
        """All clients are gone: time alone ends all members, and answers everybody who waits."""
        self.pass_ms(2 * HOUR_MS)
        assert not self.waiting
        for group_id, group in self.groups.all().items():
            assert not group.members, f"{group_id} still has members"
            assert self.groups.offsets.of(group_id), "a group without members and offsets is still there"


@dataclass
class ClassicClient:
    """A consumer of the classic protocol with one request under way at a time, as all of them have."""

    world: World
    group_id: str
    name: str
    topics: list[str]
    instance_id: str | None = None
    protocol_type: str = "consumer"
    member_id: str = ""
    generation: int = -1
    owned: Mapping[str, Sequence[int]] = field(default_factory=dict)
    under_way: int | None = None
    is_stable: bool = False
    fresh: Iterator[int] = field(default_factory=count)

    def step(self) -> None:
        """What it does when its heartbeat interval is over."""
        if self.under_way is not None:
            return
        if not self.is_stable:
            self._join()
            return
        if self.world.random.random() < 0.3:
            partitions = [Partition(name, number) for name, numbers in self.owned.items() for number in numbers]
            if partitions:
                self._after(self.world.commit(self.group_id, self._who(), partitions))
                return
        self._send(
            Heartbeat(
                token=next(self.world.tokens),
                member_id=self.member_id,
                instance_id=self.instance_id,
                generation=self.generation,
            )
        )

    def leave(self) -> None:
        if self.member_id and self.under_way is None:
            leavers = [Leaver(self.member_id, self.instance_id)]
            self.world.ask(self.group_id, Leave(token=next(self.world.tokens), leavers=leavers))
        self.forget()

    def crash(self) -> None:
        """It is gone without a word; what it waits for is answered to nobody."""
        self.forget(keep_waiting=True)

    def lose_connection(self) -> None:
        self.under_way = None
        self.is_stable = False

    def forget(self, *, keep_waiting: bool = False) -> None:
        self.member_id, self.generation, self.owned, self.is_stable = "", -1, {}, False
        if not keep_waiting or self.under_way not in self.world.waiting:
            self.under_way = None
        elif self.under_way is not None:
            self.world.waiting[self.under_way] = ClassicClient(self.world, self.group_id, "nobody", [])
            self.under_way = None

    def answered(self, token: int, body: Any) -> None:
        """An answer came; one to a connection that is gone means nothing."""
        if token != self.under_way:
            return
        self.under_way = None
        if isinstance(body, JoinReply):
            self._joined(body)
        elif hasattr(body, "assignment"):
            if body.error is ErrorCode.NONE:
                self.is_stable = True
                self.owned = Assignment.decode(body.assignment).partitions if body.assignment else {}
            else:
                self._after(body.error)
        else:
            self._after(body.error)

    def _joined(self, body: JoinReply) -> None:
        if body.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = body.member_id
            self._join()
        elif body.error is not ErrorCode.NONE:
            self._after(body.error)
        else:
            self.member_id, self.generation = body.member_id, body.generation
            assignments = []
            if body.leader == self.member_id and not body.skip_assignment:
                self.world.note("led")
                assignments = self._assign(body)
            token, who = next(self.world.tokens), {"instance_id": self.instance_id}
            self._send(sync_event(token, self.member_id, self.generation, assignments, **who))

    def _assign(self, body: JoinReply) -> list[tuple[str, bytes]]:
        shares: dict[str, dict[str, list[int]]] = {each.member_id: {} for each in body.members}
        wants = {each.member_id: Subscription.decode(each.metadata).topics for each in body.members}
        for name in TOPICS:
            topic = self.world.topics.get(name)
            readers = [member_id for member_id, topics in wants.items() if name in topics]
            if topic is not None and readers:
                for number in range(len(topic.partitions)):
                    shares[readers[number % len(readers)]].setdefault(name, []).append(number)
        return [(member_id, Assignment(partitions=share).encode()) for member_id, share in shares.items()]

    def _join(self) -> None:
        metadata = Subscription(topics=self.topics, owned=self.owned).encode()
        fields: dict[str, Any] = {
            "instance_id": self.instance_id, "client_id": self.name, "protocol_type": self.protocol_type,
            "fresh_member_id": f"{self.name}-{next(self.fresh)}-{next(self.world.tokens)}",
            "protocols": [Protocol("range", metadata), Protocol("sticky", metadata)], "session_timeout_ms": 45_000,
            "rebalance_timeout_ms": 60_000, "requires_member_id": self.instance_id is None, "can_skip_assignment": True,
        }  # fmt: skip
        self._send(join_event(next(self.world.tokens), self.member_id, **fields))

    def _send(self, event: Any) -> None:
        self.under_way = event.token
        self.world.ask(self.group_id, event, self)

    def _after(self, error: ErrorCode) -> None:
        match error:
            case ErrorCode.NONE:
                pass
            case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.NOT_COORDINATOR:
                self.is_stable = False
            case _:
                self.world.note(f"classic: {error.name}")
                self.forget()

    def _who(self) -> Committer:
        return Committer(member_id=self.member_id, instance_id=self.instance_id, generation=self.generation)


@dataclass
class ConsumerClient:
    """A consumer of KIP-848."""

    world: World
    group_id: str
    name: str
    topics: list[str]
    instance_id: str | None = None
    assignor: str | None = None
    epoch: int = 0
    owned: dict[Any, list[int]] = field(default_factory=dict)
    to_report: bool = False
    incarnation: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.name}.{self.incarnation}"

    def step(self) -> None:
        """What it does when its heartbeat interval is over."""
        if self.epoch > 0 and self.world.random.random() < 0.3:
            who = Committer(member_id=self.member_id, instance_id=self.instance_id, generation=self.epoch)
            partitions = [
                Partition(topic.name, number)
                for topic_id, numbers in self.owned.items()
                if (topic := self.world.topics.get_by_id(topic_id)) is not None
                for number in numbers
            ]
            if partitions:
                self.world.commit(self.group_id, who, partitions)
        fields: dict[str, Any] = {}
        if self.epoch == 0:
            fields = {"topics": self.topics, "rebalance_timeout_ms": 60_000, "assignor": self.assignor, "owned": {}}
        elif self.to_report:
            fields = {"owned": self.owned}
        self._beat(self.epoch, **fields)

    def resubscribe(self, topics: list[str]) -> None:
        self.topics = topics
        if self.epoch > 0:
            self._beat(self.epoch, topics=topics)

    def leave(self) -> None:
        if self.epoch > 0:
            self._beat(-2 if self.instance_id is not None and self.world.random.random() < 0.5 else -1)
        self.crash()

    def crash(self) -> None:
        self.epoch, self.owned, self.to_report = 0, {}, False
        self.incarnation += 1

    def _beat(self, epoch: int, **fields: Any) -> None:
        event = ConsumerHeartbeat(
            token=next(self.world.tokens),
            member_id=self.member_id,
            epoch=epoch,
            instance_id=self.instance_id,
            client_id=self.name,
            **fields,
        )
        reply = self.world.ask(self.group_id, event)
        if epoch < 0:
            return
        self.to_report = False
        if reply.error is ErrorCode.NONE:
            self.epoch = reply.epoch
            if reply.assigned is not None:
                self.owned = {topic_id: sorted(numbers) for topic_id, numbers in reply.assigned.items()}
                self.to_report = True
        else:
            self.world.note(f"consumer: {reply.error.name}")
            self.crash()
