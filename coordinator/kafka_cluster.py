"""The whole cluster except sockets and clock: topics, groups and pending answers.

A `Call` goes in with the time, and `Answer` objects come out, for that call or for earlier ones. Tests can run it
without a network, under their own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from loadwise.coordinator.authorization.authorizer import AclRecord, Authorizer
from loadwise.coordinator.calls import (
    Answer,
    Call,
    DelayedFetch,
    DelayedShareFetch,
    EncodedBody,
    GroupRequest,
    HangUp,
    LastAnswer,
    Outcome,
    Response,
    Service,
)
from loadwise.coordinator.cluster.brokers import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    Brokers,
)
from loadwise.coordinator.cluster.checksum import crc32c
from loadwise.coordinator.cluster.log import Appended, PartitionLog
from loadwise.coordinator.cluster.producer_ids import ProducerIds
from loadwise.coordinator.cluster.records import CoordinatorsRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from loadwise.coordinator.cluster.topics import Topics
from loadwise.coordinator.configs.client_quotas import ClientQuotas, QuotaRecord
from loadwise.coordinator.configs.resources import OF_ALL_BROKERS, ConfigsRecord, ResourceConfigs, ResourceType
from loadwise.coordinator.configs.topic_configs import LogConfig, broker_configs_of_topics
from loadwise.coordinator.delayed_fetches import DelayedFetches
from loadwise.coordinator.delayed_share_fetches import DelayedShareFetches
from loadwise.coordinator.errors import LoginRefusedError
from loadwise.coordinator.failed_topics import FailedTopics
from loadwise.coordinator.groups.effects import Reply
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.records import Record
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.groups.share_limits import ShareGroupLimits
from loadwise.coordinator.groups.streams_limits import StreamsGroupLimits
from loadwise.coordinator.keeper import NOTHING, Keeper, LogName, Place, Snapshot
from loadwise.coordinator.log_upkeep import LogUpkeep
from loadwise.coordinator.offsets_topic import OffsetsTopic
from loadwise.coordinator.refusals import refusal
from loadwise.coordinator.repeated_heartbeats import RepeatedHeartbeat
from loadwise.coordinator.restored import check_brokers, restored
from loadwise.coordinator.security.login import Login, Stage
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.security.principal_rules import principal_name, principal_rules
from loadwise.coordinator.security.users import ScramRecord, Users
from loadwise.coordinator.settings import BrokerSettings
from loadwise.coordinator.shares.service import Shares
from loadwise.coordinator.transactions.coordinator import Transactions
from loadwise.coordinator.transactions.outcomes import Markers
from loadwise.coordinator.transactions.transaction import Transaction
from loadwise.protocol.error_codes import ErrorCode

COORDINATOR_EPOCH = 0
"""The epoch of every transaction coordinator, which its markers contain."""


_PROTOCOLS = {
    "ConsumerGroupDescribe": "consumer",
    "ConsumerGroupHeartbeat": "consumer",
    "StreamsGroupDescribe": "streams",
    "StreamsGroupHeartbeat": "streams",
}
"""The APIs of each protocol that can be disabled (group.coordinator.rebalance.protocols)."""


class Cluster:
    """All brokers of a cluster with one shared state; each call names its broker."""

    def __init__(
        self,
        services: Mapping[int, Service],
        settings: BrokerSettings | None = None,
        *,
        brokers: Brokers | None = None,
        security: Security | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self.settings = settings or BrokerSettings()
        self.services = services
        self.security = security or Security(protocol="PLAINTEXT")
        """How clients log in."""
        self._principal_rules = principal_rules(self.security.principal_mapping_rules)
        self._switched_off = {
            api for api, protocol in _PROTOCOLS.items() if protocol not in self.settings.rebalance_protocols
        }
        self.new_uuid = new_uuid
        self.cluster_id = "loadwise"
        self.brokers = brokers or Brokers()
        self.tokens = count(1)
        """Tokens of pending answers. They are never reused, so no client gets an answer from before a restart."""
        self.now_ms = 0
        """The time of the current call."""
        # Not 0, because a producer may have outlived another coordinator on this port.
        self._begin(Snapshot((), {}), new_uuid().int >> 66, NOTHING)

    def _begin(self, state: Snapshot, first_producer_id: int, keeper: Keeper) -> None:
        """Use this state from now on; pending answers are dropped."""
        self._keeper = keeper
        self.brokers.keeper = keeper
        self.brokers.load(state.of(CoordinatorsRecord))
        self.users = Users(self.security.users, self.security.mechanisms, keeper)
        self.users.load(state.of(ScramRecord))
        self.authorizer = self._new_authorizer(state, keeper)
        """Decides what clients may do; None: everything is allowed."""
        self.resource_configs = ResourceConfigs(keeper, self.settings.configs)
        """The configs of brokers, groups and client metrics."""
        self.resource_configs.load(state.of(ConfigsRecord))
        self.client_quotas = ClientQuotas(keeper)
        self.client_quotas.load(state.of(QuotaRecord))
        self.topics = Topics(
            brokers=self.brokers,
            new_logs=self._new_logs,
            new_id=self.new_uuid,
            max_partitions=self.settings.max_partitions,
            keeper=keeper,
        )
        self.topics.load(state.of(TopicRecord), state.of(PartitionRecord), state.logs)
        records = [value for _, value in state.values if isinstance(value, Record)]
        self.groups = Groups.replay(
            records,
            self.now_ms,
            self.settings.groups,
            self.settings.consumer_groups,
            self.topics,
            logs=self.topics,
            share_limits=self.share_limits,
            streams_limits=self.streams_limits,
            keeper=keeper,
        )
        self.shares = Shares(self.groups, self.topics)
        self.fetches = DelayedFetches()
        self.share_fetches = DelayedShareFetches()
        self.failed_topics = FailedTopics()
        """Internal topics of groups that could not be created."""
        self.offsets_topic = OffsetsTopic(
            self.topics,
            self.brokers,
            self.groups,
            grown=self.grown,
            delete_records=self.delete_records,
            now_ms=lambda: self.now_ms,
            replication_factor=self.settings.offsets_replication_factor,
        )
        self.new_producer_id = ProducerIds(first_producer_id, keeper)
        """Returns new producer ids, different from those of an earlier coordinator on this port."""
        for record in state.of(ProducerIdsRecord):
            self.new_producer_id.load(record)
        self.transactions = Transactions(self.new_producer_id, self.settings.transactions, keeper)
        self.transactions.load(state.of(Transaction))
        self.encoded: dict[Any, EncodedBody] = {}
        """Metadata responses, cached until the topics change; see ``apis/metadata.py``."""
        self._upkeep = LogUpkeep(
            self.topics,
            self.settings.producer_id_expiration_ms,
            retention_check_interval_ms=self.settings.retention_check_interval_ms,
            delete_records=self.delete_records,
            now_ms=self.now_ms,
        )
        self._waiting: dict[Token, tuple[Call, Callable[[Call, Any], Response]]] = {}
        self._answers: list[Answer] = []
        for markers in self.transactions.unfinished:
            self.write_markers(markers)

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `expire` must be called next; None if nothing is due."""
        deadlines = (
            self.groups.next_deadline_ms,
            self.fetches.next_deadline_ms,
            self.shares.next_deadline_ms,
            self.share_fetches.next_deadline_ms,
            self.transactions.next_deadline_ms,
            self._upkeep.next_deadline_ms,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def receive(self, call: Call, now_ms: int) -> list[Answer]:
        """Handle a call. This or a later `receive` or `expire` returns its answer."""
        self.now_ms = now_ms
        outcome = self._before_login(call)
        if outcome is None and call.request.api.name in self._switched_off:
            outcome = refusal(call, ErrorCode.UNSUPPORTED_VERSION, tells_why=False)
        if outcome is None:
            service = self.services[call.request.api.key]
            if self.authorizer is None:
                outcome = service.handle(call, self)
            else:
                outcome = service.guard(call, self, service.handle)
        if isinstance(outcome, GroupRequest):
            self._waiting[call.token] = (call, outcome.respond)
            is_here = self.coordinates(call, outcome.group_id)
            self.pass_on(self.groups.handle(outcome.group_id, outcome.event, now_ms, is_here=is_here))
        elif isinstance(outcome, DelayedFetch):
            self.fetches.delay(call, outcome, now_ms)
        elif isinstance(outcome, DelayedShareFetch):
            self.share_fetches.delay(call, outcome, now_ms)
        else:
            self._answers.append(Answer(call, outcome))
        return self._take_answers()

    def take_repeated(self, heartbeat: RepeatedHeartbeat, node_id: int, now_ms: int) -> bool:
        """Keep a classic group's member alive if it repeats its last heartbeat.

        Returns False and changes nothing if the heartbeat needs normal handling: if its answer may be an error, or an
        authorizer must check it.
        """
        if self.authorizer is not None or self.brokers.coordinator_of(heartbeat.group_id).id != node_id:
            return False
        group = self.groups.classic(heartbeat.group_id)
        return group is not None and group.keep_alive(
            heartbeat.member_id, heartbeat.instance_id, heartbeat.generation, now_ms
        )

    # ---- over a restart ----

    def snapshot(self) -> Snapshot:
        """Return all state that survives a restart. O(values + batches), without a copy of a batch."""
        contents = ((each.log.name, each.log.contents()) for topic in self.topics for each in topic.partitions)
        return Snapshot(tuple(self._values()), {name: each for name, each in contents if each.batches})

    def restore(self, snapshot: Snapshot, now_ms: int) -> None:
        """Restore the snapshot and drop everything later, except the producer ids in use.

        Groups return as a broker reads them from their records when it takes them over. No producer gets an id and
        epoch that were used before. A producer without transactions that has written since then continues with its
        current sequence numbers. Raises `BadClusterError` if partitions are on brokers that do not exist; then nothing
        has changed.
        """
        check_brokers(snapshot, self.brokers)
        for record in snapshot.of(ProducerIdsRecord):
            self.new_producer_id.load(record)
        ids = self.new_producer_id.record()
        self.now_ms = now_ms
        state = restored(snapshot, ids, self.topics)
        self._keeper.replace(state)
        self._begin(state, ids.next_id, self._keeper)

    def load(self, state: Snapshot, keeper: Keeper, now_ms: int) -> None:
        """Load a keeper's state, and write each further change to it.

        Raises `BadClusterError` as `restore` does.
        """
        check_brokers(state, self.brokers)
        self.now_ms = now_ms
        self._begin(state, self.new_producer_id.record().next_id, keeper)

    def _new_authorizer(self, state: Snapshot, keeper: Keeper) -> Authorizer | None:
        options = self.security.authorization
        if options is None:
            return None
        authorizer = options.authorizer(keeper)
        authorizer.load(state.of(AclRecord))
        return authorizer

    def _values(self) -> Iterator[tuple[Place, object]]:
        ids = self.new_producer_id.record()
        holders = (self.brokers, self.users, self.resource_configs, self.client_quotas, self.topics)
        for record in (ids, *(each for holder in holders for each in holder.records())):
            yield record.place, record
        if self.authorizer is not None:
            for acl in self.authorizer.records():
                yield acl.place, acl
        yield from self.groups.journal.entries()
        for transaction in self.transactions.all.values():
            yield transaction.place, transaction

    # ---- requests ----

    def new_login(self, certificate_name: str | None) -> Login | None:
        """Return the login of a new connection; None if clients need not log in.

        The client may have a certificate. Raises `LoginRefusedError` if no rule matches its name.
        """
        if self.security.asks_for_login:
            options = self.security
            return Login(self.users, options.mechanisms, options.validate_token, options.max_session_ms)
        if certificate_name is None:
            return None
        name = principal_name(self._principal_rules, certificate_name)
        if name is None:
            raise LoginRefusedError(
                f"no rule of ssl.principal.mapping.rules matches the certificate of {certificate_name}"
            )
        return Login.by_certificate(name)

    def expire(self, now_ms: int) -> list[Answer]:
        """Complete everything that is due."""
        self.now_ms = now_ms
        self.pass_on(self.groups.expire(now_ms))
        self.shares.expire(now_ms)
        for markers in self.transactions.expire(now_ms):
            self.write_markers(markers)
        self._upkeep.run(now_ms)
        return self._take_answers()

    def operate(self, operation: Callable[[Groups, int], Iterable[Reply]], now_ms: int) -> list[Answer]:
        """Run an operation on the groups that no client requested; it gets the groups and the time."""
        self.now_ms = now_ms
        self.pass_on(operation(self.groups, now_ms))
        return self._take_answers()

    def hurry(self, token: Token, now_ms: int) -> list[Answer]:
        """Complete a waiting fetch now and return its answer."""
        self.now_ms = now_ms
        self.fetches.hurry(token)
        return self._take_answers()

    def forget(self, token: Token) -> None:
        """Drop a request whose client disconnected. A join stays, as in Kafka: only its session ends a member."""
        self.fetches.forget(token)
        self.share_fetches.forget(token)

    def disconnected(self, connection_id: int, now_ms: int) -> list[Answer]:
        """Release the records that a disconnected share consumer had acquired."""
        self.now_ms = now_ms
        self.shares.disconnected(connection_id)
        return self._take_answers()

    def share_limits(self, group_id: str) -> ShareGroupLimits:
        """Return the limits of a share group; its own configs override the brokers'."""
        return self.settings.share_groups.of_group(self.resource_configs.of(ResourceType.GROUP, group_id))

    def streams_limits(self, group_id: str) -> StreamsGroupLimits:
        """Return the limits of a streams group; its own configs override the brokers'."""
        return self.settings.streams_groups.of_group(self.resource_configs.of(ResourceType.GROUP, group_id))

    def delete_group(self, call: Call, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets."""
        error, replies = self.groups.delete(group_id, self.now_ms, is_here=self.coordinates(call, group_id))
        self.pass_on(replies)
        if error is ErrorCode.NONE:
            self.shares.forget_group(group_id)
        return error

    def coordinates(self, call: Call, group_id: str) -> bool:
        """Return whether the call's broker coordinates a group; if not, answer NOT_COORDINATOR."""
        return self.brokers.coordinator_of(group_id).id == call.node_id

    def coordinates_transactions(self, call: Call, transactional_id: str) -> bool:
        """Return whether the call's broker coordinates a transactional id; if not, answer NOT_COORDINATOR."""
        return self.brokers.coordinator_of(transactional_id, TRANSACTION_STATE).id == call.node_id

    def grown(self, log: PartitionLog, appended: Appended) -> None:
        """Count the bytes that were appended to a log, and complete fetches that waited for them."""
        self.topics.kept_bytes += appended.size_bytes
        if appended.size_bytes and self._keeper is not NOTHING:
            self._keeper.append(log.name, log.last_batch)
        if appended.size_bytes:
            self._upkeep.grown(log, self.now_ms)
        if log.high_watermark == log.end_offset:
            self.fetches.grown(log, appended.size_bytes, appended.stable_bytes)
        self.share_fetches.changed([log])

    def configs_changed(self) -> None:
        """Apply the current configs to all logs."""
        broker_configs = self._broker_configs()
        for topic in self.topics:
            config = LogConfig.of(topic.configs, broker_configs)
            for partition in topic.partitions:
                partition.log.config = config
                if partition.check_watermark():
                    self.log_gone(partition.log)

    def delete_records(self, log: PartitionLog, offset: int) -> None:
        """Delete a log's records before an offset, and free their bytes."""
        if offset > log.start_offset:
            self.topics.kept_bytes -= log.delete_before(offset)
            self._keeper.drop_before(log.name, offset)
            partition = self.topics.partition_of(log.name)
            if partition is not None:
                self.topics.keep(partition)
            self.share_fetches.changed([log])  # deleted records make room for new ones

    def write_markers(self, markers: Markers) -> None:
        """End a transaction in all its partitions and groups; deleted partitions are skipped."""
        producer_id, epoch = markers.producer
        for partition in markers.partitions:
            if partition.topic == CONSUMER_OFFSETS:
                self.groups.end_transaction(producer_id, partition.number, committed=markers.committed)
                continue
            log = self.topics.log(*partition)
            if log is not None:
                appended = log.end_transaction(
                    producer_id,
                    epoch,
                    committed=markers.committed,
                    coordinator_epoch=COORDINATOR_EPOCH,
                    timestamp_ms=self.now_ms,
                )
                self.grown(log, appended)
        self.transactions.complete(markers.transactional_id, self.now_ms)

    def log_gone(self, log: PartitionLog) -> None:
        """Answer fetches of a log that was deleted, moved, or has more to report."""
        self.fetches.gone(log)
        self.share_fetches.changed([log])

    def _before_login(self, call: Call) -> Outcome | None:
        """Return the answer to a call before its login; None if the call is allowed."""
        if call.login is None or call.login.expects(call.request.api.name, self.now_ms):
            return None
        if call.login.stage is Stage.DONE:
            return HangUp(f"{call.request.api.name} came after the session had expired: the client must log in again")
        reason = f"{call.request.api.name} came before the login was complete"
        if call.login.stage is Stage.TOKENS:
            return LastAnswer(refusal(call, ErrorCode.ILLEGAL_SASL_STATE), reason)
        return HangUp(reason)

    def pass_on(self, replies: Iterable[Reply]) -> None:
        """Send the groups' replies to the calls that waited for them."""
        for reply in replies:
            call, respond = self._waiting.pop(reply.token)
            self._answers.append(Answer(call, respond(call, reply.body)))

    def _take_answers(self) -> list[Answer]:
        if self.fetches:
            self._answers += self.fetches.take_completed(self.now_ms)
        self.share_fetches.changed(self.shares.take_woken())
        if self.share_fetches:
            self._answers += self.share_fetches.take_completed(self.now_ms)
        answers, self._answers = self._answers, []
        return answers

    def _new_logs(self, configs: Mapping[str, str], names: Sequence[LogName]) -> list[PartitionLog]:
        config = LogConfig.of(configs, self._broker_configs())
        return [PartitionLog(crc32c, config, name) for name in names]

    def _broker_configs(self) -> Mapping[str, str]:
        """Return the brokers' configs that are topic defaults: initial ones, then later changes."""
        controller = str(self.brokers.controller.id)
        of_all, its_own = (self.resource_configs.of(ResourceType.BROKER, each) for each in (OF_ALL_BROKERS, controller))
        max_batch_bytes = str(self.settings.max_batch_bytes)
        as_started = {"message.max.bytes": max_batch_bytes, **broker_configs_of_topics(self.settings.configs)}
        return {**as_started, **of_all, **its_own}
