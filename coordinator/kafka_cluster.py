"""The state of a cluster, and what follows from its changes. The router passes calls to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import TypeAlias
from uuid import UUID, uuid4

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.delayed_fetches import DelayedFetches
from loadwise.coordinator.calls.logins import SecurityOptions
from loadwise.coordinator.calls.rights import Rights
from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.cluster.checksum import crc32c
from loadwise.coordinator.cluster.log import Appended, PartitionLog
from loadwise.coordinator.cluster.log_upkeep import LogUpkeep
from loadwise.coordinator.cluster.producer_ids import ProducerIds
from loadwise.coordinator.cluster.records import CoordinatorsRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from loadwise.coordinator.cluster.restored import check_brokers, restored
from loadwise.coordinator.cluster.topics import Topic, Topics
from loadwise.coordinator.configs.resources import OF_ALL_BROKERS, ConfigResourceType, ConfigsRecord, ResourceConfigs
from loadwise.coordinator.configs.topic_configs import LogConfig, broker_configs_of_topics
from loadwise.coordinator.errors import BadSecurityError, BadTopicError
from loadwise.coordinator.feature import Feature, Features
from loadwise.coordinator.groups.effects import CommitReply, Reply
from loadwise.coordinator.groups.events import CommitOffsets
from loadwise.coordinator.groups.offsets_topic import OffsetsTopic
from loadwise.coordinator.groups.records import Record
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.keeper import NOTHING, Keeper, LogName, Place, Snapshot
from loadwise.coordinator.settings import BrokerSettings
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


class Cluster:
    """All brokers of a cluster with one shared state; each call names its broker."""

    def __init__(
        self,
        settings: BrokerSettings | None = None,
        *,
        apis: Iterable[Api] = (),
        features: Iterable[type[Feature]] = (),
        brokers: Brokers | None = None,
        security: SecurityOptions | None = None,
        new_uuid: Callable[[], UUID] = uuid4,
    ) -> None:
        self.settings = settings or BrokerSettings()
        self.apis = sorted(apis, key=lambda api: api.key)
        """The served APIs."""
        self.security = security
        """How clients log in; None: they need not."""
        self.brokers = brokers or Brokers()
        self.now_ms = 0
        """The time of the current call."""
        self.outbox: list[Reply] = []
        """Replies of groups to earlier calls, for the router."""
        # Not 0, because a producer may have outlived another coordinator on this port.
        self._begin(Snapshot((), {}), new_uuid().int >> 66, NOTHING, new_uuid, features)

    def _begin(
        self,
        state: Snapshot,
        first_producer_id: int,
        keeper: Keeper,
        new_uuid: Callable[[], UUID],
        kinds: Iterable[type[Feature]],
    ) -> None:
        """Use this state from now on; pending answers are dropped."""
        self.keeper = keeper
        """Stores each change."""
        self.brokers.keeper = keeper
        self.brokers.load(state.of(CoordinatorsRecord))
        self.authorizer: Rights | None = None
        """Decides what clients may do; None: everything is allowed."""
        self.resource_configs = ResourceConfigs(keeper, self.settings.configs)
        """The configs of brokers, groups and client metrics."""
        self.resource_configs.load(state.of(ConfigsRecord))
        self.topics = Topics(
            brokers=self.brokers,
            new_logs=self._new_logs,
            new_id=new_uuid,
            max_partitions=self.settings.max_partitions,
            keeper=keeper,
        )
        self.topics.load(state.of(TopicRecord), state.of(PartitionRecord), state.logs)
        self.new_producer_id = ProducerIds(first_producer_id, keeper)
        """Returns new producer ids, different from those of an earlier coordinator on this port."""
        for record in state.of(ProducerIdsRecord):
            self.new_producer_id.load(record)
        self.features = Features(kinds, self)
        self._check_security()
        self.groups = Groups(
            self.settings.groups,
            self.settings.consumer_groups,
            self.topics,
            self.topics,
            kinds=[each.group_kind for each in self.features if each.group_kind is not None],
            configs_of=partial(self.resource_configs.of, ConfigResourceType.GROUP),
            records=[value for _, value in state.values if isinstance(value, Record)],
            now_ms=self.now_ms,
            keeper=keeper,
        )
        self.fetches = DelayedFetches()
        self.offsets_topic = OffsetsTopic(
            self.topics,
            self.brokers,
            self.groups,
            grown=self.grown,
            delete_records=self.delete_records,
            now_ms=lambda: self.now_ms,
            replication_factor=self.settings.offsets_replication_factor,
        )
        self.upkeep = LogUpkeep(
            self.topics,
            self.settings.producer_id_expiration_ms,
            retention_check_interval_ms=self.settings.retention_check_interval_ms,
            delete_records=self.delete_records,
            now_ms=self.now_ms,
        )
        self.outbox.clear()
        for feature in self.features:
            feature.load(state)

    def _check_security(self) -> None:
        """Raise `BadSecurityError` if the feature that security needs is not there."""
        if self.security is None:
            return
        if all(kind.new_login is Feature.new_login for kind in self.features.kinds):
            raise BadSecurityError("no feature lets clients log in")
        if self.security.authorization is not None and self.authorizer is None:
            raise BadSecurityError("no feature decides what clients may do")

    def new_uuid(self) -> UUID:
        """Return a new id, as topics and members get one."""
        return self.topics.new_id()

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
        self.keeper.replace(state)
        self._begin(state, ids.next_id, self.keeper, self.topics.new_id, self.features.kinds)

    def load(self, state: Snapshot, keeper: Keeper, now_ms: int) -> None:
        """Load a keeper's state, and write each further change to it.

        Raises `BadClusterError` as `restore` does.
        """
        check_brokers(state, self.brokers)
        self.now_ms = now_ms
        self._begin(state, self.new_producer_id.record().next_id, keeper, self.topics.new_id, self.features.kinds)

    def _values(self) -> Iterator[tuple[Place, object]]:
        ids = self.new_producer_id.record()
        holders = (self.brokers, self.resource_configs, self.topics)
        for record in (ids, *(each for holder in holders for each in holder.records())):
            yield record.place, record
        yield from self.groups.journal.entries()
        for feature in self.features:
            yield from feature.values()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises `BadTopicError` if it exists already or is not valid."""
        if not isinstance(partitions, Integral) or isinstance(partitions, bool):
            raise BadTopicError(f"the topic {name!r} has {partitions!r} partitions; it must be a whole number")
        refusal = self.topics.refusal(name, partitions)
        if refusal is not None:
            raise BadTopicError(refusal.message)
        self.topics.create(name, partitions)

    def delete_group(self, call: Call, group_id: str) -> ErrorCode:
        """Delete a group without members, and its offsets."""
        error, replies = self.groups.delete(group_id, self.now_ms, is_here=self.coordinates(call, group_id))
        self.outbox += replies
        if error is ErrorCode.NONE:
            for feature in self.features:
                feature.group_deleted(group_id)
        return error

    def commit_offsets(self, call: Call, group_id: str, event: CommitOffsets) -> ErrorCode:
        """Pass a call's commit to a group, which replies to it at once."""
        replies = self.groups.handle(group_id, event, self.now_ms, is_here=self.coordinates(call, group_id))
        self.outbox += [reply for reply in replies if reply.token != call.token]
        (error,) = [
            reply.body.error for reply in replies if reply.token == call.token and isinstance(reply.body, CommitReply)
        ]
        return error

    def coordinates(self, call: Call, group_id: str) -> bool:
        """Return whether the call's broker coordinates a group; if not, answer NOT_COORDINATOR."""
        return self.brokers.coordinates(call.node_id, group_id)

    def grown(self, log: PartitionLog, appended: Appended) -> None:
        """Count the bytes that were appended to a log, and complete fetches that waited for them."""
        self.topics.kept_bytes += appended.size_bytes
        if appended.size_bytes and self.keeper is not NOTHING:
            self.keeper.append(log.name, log.last_batch)
        if appended.size_bytes:
            self.upkeep.grown(log, self.now_ms)
        if log.high_watermark == log.end_offset:
            self.fetches.grown(log, appended.size_bytes, appended.stable_bytes)
        self._log_changed(log)

    def configs_changed(self, topics: Iterable[Topic]) -> None:
        """Apply the current configs to the logs of topics."""
        broker_configs = self._broker_configs()
        for topic in topics:
            config = LogConfig.of(topic.configs, broker_configs)
            for partition in topic.partitions:
                partition.log.config = config
                if partition.check_watermark():
                    self.log_gone(partition.log)

    def delete_records(self, log: PartitionLog, offset: int) -> None:
        """Delete a log's records before an offset, and free their bytes."""
        if offset > log.start_offset:
            self.topics.kept_bytes -= log.delete_before(offset)
            self.keeper.drop_before(log.name, offset)
            partition = self.topics.partition_of(log.name)
            if partition is not None:
                self.topics.keep(partition)
            self._log_changed(log)

    def log_gone(self, log: PartitionLog) -> None:
        """Answer fetches of a log that was deleted, moved, or has more to report."""
        self.fetches.gone(log)
        self._log_changed(log)

    def delete_topics(self, topics: Collection[Topic]) -> None:
        """Delete topics with all that is known of them, and answer fetches of them.

        One look at all groups serves all topics.
        """
        for topic in topics:
            self.topics.delete(topic)
        for feature in self.features:
            feature.topics_deleted({topic.id for topic in topics})
        for topic in topics:
            for partition in topic.partitions:
                self.log_gone(partition.log)
        self.groups.forget_topics({topic.name for topic in topics})

    def _log_changed(self, log: PartitionLog) -> None:
        for feature in self.features.watching_logs:
            feature.log_changed(log)

    def _new_logs(self, configs: Mapping[str, str], names: Sequence[LogName]) -> list[PartitionLog]:
        config = LogConfig.of(configs, self._broker_configs())
        return [PartitionLog(crc32c, config, name) for name in names]

    def _broker_configs(self) -> Mapping[str, str]:
        """Return the brokers' configs that are topic defaults: initial ones, then later changes."""
        controller = str(self.brokers.controller.id)
        of_all, its_own = (
            self.resource_configs.of(ConfigResourceType.BROKER, each) for each in (OF_ALL_BROKERS, controller)
        )
        max_batch_bytes = str(self.settings.max_batch_bytes)
        as_started = {"message.max.bytes": max_batch_bytes, **broker_configs_of_topics(self.settings.configs)}
        return {**as_started, **of_all, **its_own}


Handler: TypeAlias = Callable[[Call, Cluster], Outcome]
"""Handles the requests of an API."""
Guard: TypeAlias = Callable[[Call, Cluster, Handler], Outcome]
"""Runs before a handler if there is an authorizer; see ``apis/access.py``."""
