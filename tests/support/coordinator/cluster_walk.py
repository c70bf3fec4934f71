"""A cluster that anything may happen to, through the requests of clients: for tests of what survives a restart."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any
from uuid import UUID

from client_messages import client_request, client_response, request_bytes
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from record_batches import batch
from streams_exchanges import streams_heartbeat, topology

from loadwise.coordinator.calls.call import Answer, Call, EncodedBody, HangUp
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, coordinator_partition
from loadwise.coordinator.configs.resources import ConfigResourceType
from loadwise.coordinator.faults.injector import FaultInjector
from loadwise.coordinator.faults.rules import Faults
from loadwise.coordinator.groups.classic.states import GroupState
from loadwise.coordinator.handling import leadership
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.keeper import NOTHING, Keeper, KeptBatch, LogContents, LogName, Place, Snapshot
from loadwise.coordinator.quotas.client_quotas import CLIENT_ID, USER
from loadwise.coordinator.quotas.feature import ClusterQuotas
from loadwise.coordinator.routing.router import Router
from loadwise.coordinator.routing.services import services
from loadwise.coordinator.security.feature import ClusterLogins
from loadwise.coordinator.security.users import ScramCredential
from loadwise.coordinator.streams.feature import StreamsGroups
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import decode_request, encode_response, frame_of, served

APIS = served(service.api for service in services().values())
TOPICS = ["s", "t", "u"]
GROUPS = ["g", "h"]
IDS = ["x", "y"]


class MemoryKeeper:
    """Keeps what it is told in dictionaries, as a model of a directory."""

    def __init__(self) -> None:
        self.values: dict[Place, object] = {}
        self.logs: dict[LogName, list[KeptBatch]] = {}

    def replace(self, state: Snapshot) -> None:
        self.values = dict(state.values)
        self.logs = {name: list(contents.kept()) for name, contents in state.logs.items()}

    def put(self, place: Place, value: object) -> None:
        self.values.pop(place, None)
        self.values[place] = value

    def drop(self, place: Place) -> None:
        self.values.pop(place, None)

    def append(self, log: LogName, batch: KeptBatch) -> None:
        self.logs.setdefault(log, []).append(batch)

    def drop_before(self, log: LogName, offset: int) -> None:
        self.logs[log] = [each for each in self.logs.get(log, []) if each.last_offset >= offset]

    def drop_log(self, log: LogName) -> None:
        self.logs.pop(log, None)

    def state(self) -> Snapshot:
        return Snapshot(
            tuple(self.values.items()), {name: LogContents.of(each) for name, each in self.logs.items() if each}
        )


def new_router(keeper: Keeper = NOTHING) -> Router:
    router = Router()
    cluster = router.cluster
    (node,) = cluster.brokers.nodes
    node.host, node.port = "127.0.0.1", 9092
    if keeper is not NOTHING:
        cluster.load(Snapshot((), {}), keeper, 1000)
    return router


def facts(cluster: Cluster) -> dict[str, Any]:
    """All that a cluster knows and has to know after a restart too, in a form that can be compared."""
    state = cluster.snapshot()
    values = dict(state.values)
    values.pop(("producer ids",), None)
    return {
        "values": values,
        "logs": {name: tuple(map(tuple, each)) for name, each in state.logs.items()},
        "kept bytes": cluster.topics.kept_bytes,
        "groups": {
            group_id: (group.type, tuple(sorted(group.members)))
            for group_id, group in cluster.groups.all().items()
            # A group without a record, as of a commit of nothing, is not remembered; one in a rebalance comes back as
            # it was before.
            if any(cluster.groups.journal.of_group(group_id))
            and (group.state in (GroupState.STABLE, GroupState.EMPTY) or group.type in ("consumer", "share"))
        },
        "offsets": {
            group_id: dict(cluster.groups.offsets.of(group_id)) for group_id in cluster.groups.offsets.group_ids()
        },
        "pending": {group_id: cluster.groups.pending_offsets.of(group_id) for group_id in GROUPS},
        "stable offsets": {
            each.log.name: each.log.stable_offset for topic in cluster.topics for each in topic.partitions
        },
        "configs": {topic.name: [each.log.config for each in topic.partitions] for topic in cluster.topics},
    }


class ClusterWalk(RuleBasedStateMachine):
    """What clients and administrators may do to a cluster of one broker. Subclasses tell what must hold."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper = MemoryKeeper()
        router = new_router(self.keeper)
        self.cluster = router.cluster
        self.cluster.now_ms = self.now_ms = 1000
        self.faults = Faults({service.api.name for service in services().values()})
        self.injector = FaultInjector(router, self.faults)
        self.tokens = count(1)
        self.waiting: set[int] = set()
        """Requests that have no answer yet."""
        self.answers: dict[int, Answer] = {}
        self.acknowledged: dict[tuple[UUID, int, int], bytes] = {}
        """Topic id, partition and base offset to what was written there."""
        self.generations: dict[tuple[str, str], int] = {}
        """Group id and type to the highest generation or epoch in the group's life."""
        self.producers: dict[str, tuple[int, int]] = {}
        self.given: list[tuple[int, int]] = []
        """Each producer id with an epoch that a producer was given."""
        self.sequences: dict[tuple[int, int, str, int], int] = {}
        self.member = 0

    def ask(self, api: str, /, version: int, **values: Any) -> Any:
        """The answer of the cluster; None if it comes later."""
        return self.exchange(client_request(api, version, **values))

    def exchange(self, request: Any) -> Any:
        frame = request_bytes(request)
        call = Call(next(self.tokens), decode_request(frame, APIS), "/127.0.0.1")
        self.waiting.add(call.token)
        answers = self.injector.receive(call, self.now_ms)
        while self.injector.has_unfinished:
            answers += self.injector.go_on(self.now_ms)
        self.deliver(answers)
        answer = self.answers.pop(call.token, None)
        if answer is None or isinstance(answer.response, HangUp):
            return None
        if isinstance(answer.response, EncodedBody):
            data = b"".join(frame_of(answer.response.pieces, 7, flexible=answer.response.flexible))
        else:
            data = bytes(encode_response(answer.response, answer.call.version, 7))
        return client_response(request).decode(data[4:], version=request.API_VERSION, header=True)

    def deliver(self, answers: list[Answer]) -> None:
        """Take answers in: each is for a request that has none yet."""
        self.answers.clear()
        for answer in answers:
            assert answer.call.token in self.waiting, "answered twice, or after its connection was closed"
            self.waiting.discard(answer.call.token)
            self.answers[answer.call.token] = answer

    def lose_connections(self) -> None:
        """All clients are hung up on, as by a restart: they know nothing of what they asked."""
        self.waiting.clear()
        self.producers.clear()
        self.generations.clear()

    # ---- topics and what is set ----

    @rule(name=st.sampled_from(TOPICS), partitions=st.integers(1, 2), compacts=st.booleans())
    def create(self, name: str, partitions: int, compacts: bool) -> None:
        if self.cluster.topics.refusal(name, partitions) is None:
            configs = {"cleanup.policy": "compact"} if compacts else {"message.timestamp.type": "LogAppendTime"}
            self.cluster.topics.create(name, partitions, {} if name == "t" else configs)

    @rule(name=st.sampled_from(TOPICS))
    def grow(self, name: str) -> None:
        topic = self.cluster.topics.get(name)
        if topic is not None and len(topic.partitions) < 4:
            self.cluster.topics.grow(topic, len(topic.partitions) + 1)

    @rule(name=st.sampled_from(TOPICS))
    def delete(self, name: str) -> None:
        self.ask("DeleteTopics", 6, topics=[{"name": name}], timeout_ms=1000)

    @rule(name=st.sampled_from(TOPICS))
    def move(self, name: str) -> None:
        if self.cluster.topics.get(name) is not None:
            leadership.move_leader(self.cluster, name, 0)

    @rule(name=st.sampled_from(TOPICS), value=st.sampled_from(["1000", "2000", None]), of_broker=st.booleans())
    def configure(self, name: str, value: str | None, of_broker: bool) -> None:
        config = {
            "name": "log.retention.ms" if of_broker else "retention.ms", "config_operation": 1 if value is None else 0,
            "value": value,
        }  # fmt: skip
        kind, name = (4, "") if of_broker else (2, name)
        row = {"resource_type": kind, "resource_name": name, "configs": [config]}
        self.ask("IncrementalAlterConfigs", 1, resources=[row], validate_only=False)

    @rule(user=st.sampled_from(["", "alice"]), rate=st.sampled_from([None, 10.0, 20.0]))
    def limit(self, user: str, rate: float | None) -> None:
        entity = [(USER, user or None), (CLIENT_ID, "c")]
        ClusterQuotas.of(self.cluster).quotas.alter(entity, {"producer_byte_rate": rate}, validate_only=False)

    @rule(user=st.sampled_from(["alice", "bob"]), salt=st.sampled_from([b"1", b"2", None]))
    def user(self, user: str, salt: bytes | None) -> None:
        users = ClusterLogins.of(self.cluster).users
        if salt is not None:
            users.put_scram(user, "SCRAM-SHA-256", ScramCredential(salt, b"s", b"k", 4096))
        elif users.has_scram(user, "SCRAM-SHA-256"):
            users.delete_scram(user, "SCRAM-SHA-256")

    @rule(group_id=st.sampled_from(GROUPS))
    def move_coordinator(self, group_id: str) -> None:
        self.cluster.now_ms = self.now_ms
        leadership.move_coordinator(self.cluster, group_id)

    # ---- records ----

    @rule(name=st.sampled_from(TOPICS), number=st.integers(0, 2), idempotent=st.sampled_from(["", "p", "q"]))
    def produce(self, name: str, number: int, idempotent: str) -> None:
        who = None
        if idempotent:
            if idempotent not in self.producers:
                answer = self.ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
                if answer is None or answer.error_code != ErrorCode.NONE:
                    return
                self.producers[idempotent] = answer.producer_id, answer.producer_epoch
                self.given.append(self.producers[idempotent])
            who = self.producers[idempotent]
        self.send(name, number, who)

    def send(self, name: str, number: int, who: tuple[int, int] | None, transactional_id: str | None = None) -> None:
        key = (*who, name, number) if who else None
        first = self.sequences.get(key, 0) if key else 0
        records = batch(
            [b"a", b"b"], timestamp=self.now_ms, producer=(*who, first) if who else None,
            transactional=transactional_id is not None,
        )  # fmt: skip
        data = {"name": name, "partition_data": [{"index": number, "records": records}]}
        reply = self.ask("Produce", 12, transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[data])
        if reply is None:
            return
        answer = reply.responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE:
            written = self.cluster.topics.get(name)
            assert written is not None
            self.acknowledged[written.id, number, answer.base_offset] = records[61:]
            if key:
                self.sequences[key] = first + 2

    @rule(name=st.sampled_from(TOPICS), number=st.integers(0, 2), offset=st.integers(-1, 9))
    def delete_records(self, name: str, number: int, offset: int) -> None:
        row = {"partition_index": number, "offset": offset}
        self.ask("DeleteRecords", 2, topics=[{"name": name, "partitions": [row]}], timeout_ms=1000)

    # ---- transactions ----

    @rule(name=st.sampled_from(IDS), tells=st.booleans())
    def init(self, name: str, tells: bool) -> None:
        told = self.producers.get(name, (-1, -1)) if tells else (-1, -1)
        answer = self.ask(
            "InitProducerId",
            5,
            transactional_id=name,
            transaction_timeout_ms=60_000,
            producer_id=told[0],
            producer_epoch=told[1],
        )
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.producers[name] = answer.producer_id, answer.producer_epoch
            self.given.append(self.producers[name])

    @rule(name=st.sampled_from(IDS), topic=st.sampled_from(TOPICS), number=st.integers(0, 1))
    def send_in_transaction(self, name: str, topic: str, number: int) -> None:
        if name in self.producers:
            self.send(topic, number, self.producers[name], name)

    @rule(name=st.sampled_from(IDS), topic=st.sampled_from(TOPICS), group_id=st.sampled_from(GROUPS))
    def commit_in_transaction(self, name: str, topic: str, group_id: str) -> None:
        if name not in self.producers:
            return
        partition = {
            "partition_index": 0,
            "committed_offset": self.now_ms,
            "committed_leader_epoch": 0,
            "committed_metadata": "m",
        }
        request = client_request(
            "TxnOffsetCommit", 5, transactional_id=name, group_id=group_id, producer_id=self.producers[name][0],
            producer_epoch=self.producers[name][1], member_id="", topics=[{"name": topic, "partitions": [partition]}],
        )  # fmt: skip
        self.exchange(request)

    @rule(name=st.sampled_from(IDS), committed=st.booleans(), version=st.sampled_from([4, 5]))
    def end(self, name: str, committed: bool, version: int) -> None:
        if name not in self.producers:
            return
        request = client_request(
            "EndTxn", version, transactional_id=name, producer_id=self.producers[name][0],
            producer_epoch=self.producers[name][1], committed=committed,
        )  # fmt: skip
        answer = self.exchange(request)
        if answer is None:
            del self.producers[name]  # it does not know its epoch, and begins anew
        elif answer.error_code == ErrorCode.NONE and version >= 5:
            after = answer.producer_id, answer.producer_epoch
            if after != self.producers[name]:
                self.given.append(after)
            self.producers[name] = after

    @rule(group_id=st.sampled_from(GROUPS), name=st.sampled_from(IDS), committed=st.booleans())
    def abort_by_admin(self, group_id: str, name: str, committed: bool) -> None:
        if name not in self.producers:
            return
        topics = [
            {"name": CONSUMER_OFFSETS, "partition_indexes": [coordinator_partition(group_id)]},
            {"name": "t", "partition_indexes": [0]},
        ]
        row = {
            "producer_id": self.producers[name][0], "producer_epoch": self.producers[name][1], "coordinator_epoch": 0,
            "transaction_result": committed, "topics": topics, "transaction_version": 0,
        }  # fmt: skip
        self.ask("WriteTxnMarkers", 1, markers=[row])

    # ---- groups ----

    @rule(group_id=st.sampled_from(GROUPS), topic=st.sampled_from(TOPICS), number=st.integers(0, 1))
    def commit(self, group_id: str, topic: str, number: int) -> None:
        partition = {"partition_index": number, "committed_offset": self.now_ms, "committed_metadata": None}
        request = client_request(
            "OffsetCommit", 9, group_id=group_id, member_id="", topics=[{"name": topic, "partitions": [partition]}],
        )  # fmt: skip
        self.exchange(request)

    @rule(group_id=st.sampled_from(GROUPS), topic=st.sampled_from(TOPICS), number=st.integers(0, 1))
    def delete_offset(self, group_id: str, topic: str, number: int) -> None:
        rows = [{"name": topic, "partitions": [{"partition_index": number}]}]
        self.ask("OffsetDelete", 0, group_id=group_id, topics=rows)

    # ---- faults ----

    @rule(
        api=st.sampled_from(["Produce", "EndTxn", "JoinGroup", "OffsetCommit", "ConsumerGroupHeartbeat", "*"]),
        kind=st.integers(0, 3),
        after=st.booleans(),
    )
    def fault(self, api: str, kind: int, after: bool) -> None:
        """The next request of an API goes wrong, before it is handled or after it."""
        if kind == 0 and api != "*":
            self.faults.answer(api, error="REQUEST_TIMED_OUT", after_handling=after)
        elif kind == 1:
            self.faults.delay(api, ms=300, after_handling=after)
        elif kind == 2:
            self.faults.drop(api, after_handling=after)
        elif kind == 3:
            self.faults.disconnect(api, after_handling=after)

    # ---- what always holds ----

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        for group_id in self.cluster.groups.all():
            group = self.cluster.groups.consumer_group(group_id)
            held = [
                (topic, number)
                for member_id in ([] if group is None else group.members)
                for topic, numbers in group.hard_state.members[member_id].held().items()
                for number in numbers
            ]
            assert len(held) == len(set(held)), (group_id, held)
            application = StreamsGroups.of(self.cluster).group(group_id)
            tasks = [
                task
                for member in ([] if application is None else application.members.values())
                for task in member.held().active
            ]
            assert len(tasks) == len(set(tasks)), (group_id, tasks)

    @invariant()
    def generations_rise(self) -> None:
        groups = self.cluster.groups.all()
        for key in [key for key in self.generations if key[0] not in groups or groups[key[0]].type != key[1]]:
            del self.generations[key]
        for group_id, group in groups.items():
            key = group_id, group.type
            assert group.generation >= self.generations.get(key, group.generation), key
            self.generations[key] = group.generation

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        for (topic_id, number, offset), records in list(self.acknowledged.items()):
            topic = self.cluster.topics.get_by_id(topic_id)
            log = None if topic is None else topic.partitions[number].log
            if log is None or log.start_offset > offset:
                del self.acknowledged[topic_id, number, offset]  # it was deleted
            else:
                assert log.read(offset, 1, at_least_one=True)[61:] == records

    @invariant()
    def no_producer_is_given_what_one_had(self) -> None:
        twice = [each for each, times in Counter(self.given).items() if times > 1]
        assert not twice

    @rule(group_id=st.sampled_from(GROUPS))
    def delete_group(self, group_id: str) -> None:
        self.ask("DeleteGroups", 2, groups_names=[group_id])

    @rule(
        group_id=st.sampled_from(["k", "l"]),
        member=st.sampled_from(["a", "b"]),
        topics=st.sets(st.sampled_from(TOPICS)),
    )
    def beat(self, group_id: str, member: str, topics: set[str]) -> None:
        """A member of KIP-848 joins, goes on, or joins anew."""
        group = self.cluster.groups.consumer_group(group_id)
        known = None if group is None else group.members.get(member)
        epoch = 0 if known is None or topics else known.current.epoch
        request = consumer_heartbeat(group_id, member, epoch, sorted(topics) if epoch == 0 else None)
        self.exchange(request)

    @rule(group_id=st.sampled_from(["k", "l"]), member=st.sampled_from(["a", "b"]))
    def leave(self, group_id: str, member: str) -> None:
        self.exchange(consumer_heartbeat(group_id, member, -1, None))

    @rule(
        group_id=st.sampled_from(["s", "k"]), member=st.sampled_from(["a", "b"]), leaves=st.booleans(),
        topics=st.sets(st.sampled_from(TOPICS), min_size=1),
    )  # fmt: skip
    def beat_in_share_group(self, group_id: str, member: str, leaves: bool, topics: set[str]) -> None:
        request = client_request(
            "ShareGroupHeartbeat", 1, group_id=group_id, member_id=member, member_epoch=-1 if leaves else 0,
            subscribed_topic_names=sorted(topics),
        )  # fmt: skip
        self.exchange(request)

    @rule(
        member=st.sampled_from(["a", "b"]), name=st.sampled_from(TOPICS), kind=st.integers(0, 4), last=st.integers(0, 5)
    )
    def share(self, member: str, name: str, kind: int, last: int) -> None:
        """A member acquires what there is, and tells something of the first records that it got."""
        topic = self.cluster.topics.get(name)
        if topic is None:
            return
        self.cluster.resource_configs.put(ConfigResourceType.GROUP, "s", {"share.auto.offset.reset": "earliest"})
        partition = {"partition_index": 0}
        request = client_request(
            "ShareFetch", 2, group_id="s", member_id=member, share_session_epoch=0, max_wait_ms=0, min_bytes=1,
            max_bytes=1000, max_records=5, batch_size=2, share_acquire_mode=0, is_renew_ack=False,
            topics=[{"topic_id": topic.id, "partitions": [partition]}],
        )  # fmt: skip
        answer = self.exchange(request)
        acquired = [
            got.first_offset
            for each in (answer.responses if answer is not None else ())
            for partition in each.partitions
            for got in partition.acquired_records
        ]
        if not acquired:
            return
        rows = {"first_offset": acquired[0], "last_offset": acquired[0] + last, "acknowledge_types": [kind]}
        request = client_request(
            "ShareAcknowledge", 2, group_id="s", member_id=member, share_session_epoch=1, is_renew_ack=True,
            topics=[{"topic_id": topic.id, "partitions": [{"partition_index": 0, "acknowledgement_batches": [rows]}]}],
        )  # fmt: skip
        self.exchange(request)

    @rule(
        group_id=st.sampled_from(["w", "k"]), member=st.sampled_from(["a", "b"]), reports=st.booleans(),
        source=st.sampled_from(TOPICS), leaves=st.booleans(),
    )  # fmt: skip
    def beat_in_streams_group(self, group_id: str, member: str, reports: bool, source: str, leaves: bool) -> None:
        """A member of a Streams application joins, goes on, or leaves."""
        group = StreamsGroups.of(self.cluster).group(group_id)
        known = None if group is None else group.members.get(member)
        epoch = -1 if leaves else 0 if known is None else known.current.epoch
        request = streams_heartbeat(
            group_id=group_id,
            member_id=member,
            member_epoch=epoch,
            topology=topology(source) if epoch == 0 else None,
            process_id=member,
            **dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks"), [] if epoch == 0 or reports else None),
        )
        self.exchange(request)

    @rule(group_id=st.sampled_from(["c", "k"]))
    def join_classic(self, group_id: str) -> None:
        """A member of the classic protocol comes, and the group is stable again if it is alone."""
        group = self.cluster.groups.classic_group(group_id)
        known = next(iter(group.members), "") if group is not None else ""
        offered = [{"name": "range", "metadata": Subscription(topics=("t",)).encode()}]
        request = client_request(
            "JoinGroup", 3, group_id=group_id, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id=known,
            protocol_type="consumer", protocols=offered,
        )  # fmt: skip
        answer = self.exchange(request)
        if answer is not None and answer.error_code == ErrorCode.NONE and answer.leader == answer.member_id:
            self.ask(
                "SyncGroup", 3, group_id=group_id, generation_id=answer.generation_id, member_id=answer.member_id,
                assignments=[{"member_id": answer.member_id, "assignment": b"x"}],
            )  # fmt: skip

    # ---- time ----

    @rule(ms=st.sampled_from([1, 500, 31_000, 70_000, 700_000]))
    def wait(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while (deadline_ms := self.injector.next_deadline_ms) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.deliver(self.injector.expire(self.now_ms))
        self.now_ms = end_ms


def consumer_heartbeat(group_id: str, member_id: str, epoch: int, topics: list[str] | None) -> Any:
    return client_request(
        "ConsumerGroupHeartbeat", 1, group_id=group_id, member_id=member_id, member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1, subscribed_topic_names=topics,
        topic_partitions=[] if epoch == 0 else None,
    )  # fmt: skip
