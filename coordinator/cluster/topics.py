"""Topics by name and by id. Mirrors what Kafka's ``ReplicationControlManager`` checks when topics come, grow and go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from loadwise.coordinator.cluster.brokers import INTERNAL_TOPICS, Brokers
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.cluster.records import PartitionRecord, TopicRecord
from loadwise.coordinator.cluster.replication import NO_NODE, ReplicatedPartition
from loadwise.coordinator.errors import BadClusterError
from loadwise.coordinator.keeper import NO_CONTENTS, NOTHING, Keeper, LogContents, LogName
from loadwise.protocol.error_codes import ErrorCode

MAX_NAME_LENGTH = 249
MAX_NEW_PARTITIONS = 10_000
"""Most partitions that one request may make (``QuorumController.MAX_RECORDS_PER_USER_OP``)."""
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(slots=True)
class Topic:
    """One topic and its partitions."""

    name: str
    id: UUID
    partitions: list[ReplicatedPartition]
    configs: Mapping[str, str] = field(default_factory=dict)
    """Its own configs, which `loadwise.coordinator.configs.topic_configs` has nothing against."""

    @property
    def is_internal(self) -> bool:
        """Whether only brokers write it."""
        return self.name in INTERNAL_TOPICS


@dataclass(frozen=True, slots=True)
class TopicRefusal:
    """Why something cannot be done to a topic."""

    error: ErrorCode
    message: str


TOO_MANY_AT_ONCE = TopicRefusal(
    ErrorCode.POLICY_VIOLATION,
    "Unable to perform excessively large batch operation: "
    f"one request can make at most {MAX_NEW_PARTITIONS:,} partitions.",
)
"""What a request gets that would make more than `MAX_NEW_PARTITIONS`."""
NAMED_TWICE = TopicRefusal(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
"""What a topic gets that one request creates or grows twice."""


def is_topic_name(name: str) -> bool:
    """Whether a topic may be called this (``Topic.validate``)."""
    return name not in {".", ".."} and len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name) is not None


def name_problem(name: str) -> str:
    """Why no topic may be called this, in Kafka's words."""
    if not name:
        problem = "the empty string is not allowed"
    elif name in {".", ".."}:
        problem = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        problem = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    else:
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return f"Topic name is invalid: {problem}"


def _metric_name(name: str) -> str:
    """Kafka's metrics write a dot as an underscore, so two topics must not differ in that alone."""
    return name.replace(".", "_")


class Topics:
    """The topics that there are."""

    def __init__(
        self,
        *,
        brokers: Brokers,
        new_logs: Callable[[Mapping[str, str], Sequence[LogName]], Sequence[PartitionLog]],
        new_id: Callable[[], UUID],
        max_partitions: int = 100_000,
        keeper: Keeper = NOTHING,
    ) -> None:
        self._brokers = brokers
        self._new_logs = new_logs
        self.new_id = new_id
        self._max_partitions = max_partitions
        self._keeper = keeper
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._by_metric_name: dict[str, str] = {}
        self.partition_count = 0
        """Of all topics together."""
        self._next_leader = 0
        self.kept_bytes = 0
        """Size of all record batches; the code that appends one adds its size."""
        self.version = 0
        """Grows with every change, a leader's too, so that answers made of it can be kept until then."""

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def in_turns(self) -> Iterator[Topic]:
        """All topics, for work that takes many turns: those that are deleted meanwhile are left out."""
        return (topic for topic in list(self._by_name.values()) if topic.id in self._by_id)

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> Topic | None:
        """The topic of this name, or None."""
        return self._by_name.get(name)

    def get_by_id(self, topic_id: UUID | None) -> Topic | None:
        """The topic of this id (KIP-516), or None."""
        return None if topic_id is None else self._by_id.get(topic_id)

    def partition(self, name: str, number: int) -> ReplicatedPartition | None:
        """A partition; None if there is no such topic or partition."""
        topic = self._by_name.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            return None
        return topic.partitions[number]

    def partition_of(self, log: LogName) -> ReplicatedPartition | None:
        """The partition that a log belongs to, or None."""
        topic = self._by_id.get(log.topic_id)
        return None if topic is None or log.partition >= len(topic.partitions) else topic.partitions[log.partition]

    def racks(self, name: str) -> list[list[str]] | None:
        """The racks that hold each partition of a topic; None if its brokers are in no rack, or there is no topic."""
        topic = self._by_name.get(name)
        if topic is None:
            return None
        nodes = [[self._brokers.node(each) for each in partition.replicas] for partition in topic.partitions]
        racks = [[node.rack for node in row if node is not None and node.rack is not None] for row in nodes]
        return racks if any(racks) else None

    def log(self, name: str, partition: int) -> PartitionLog | None:
        """The log of a partition; None if there is no such topic or partition."""
        found = self.partition(name, partition)
        return None if found is None else found.log

    def refusal(self, name: str, partitions: int, replication_factor: int | None = None) -> TopicRefusal | None:
        """Why this topic cannot be made; None if it can."""
        return self.name_refusal(name) or self.size_refusal(partitions, replication_factor)

    def name_refusal(self, name: str) -> TopicRefusal | None:
        """Why no topic of this name can be made; None if one can."""
        if name in self._by_name:
            return TopicRefusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if not is_topic_name(name):
            return TopicRefusal(ErrorCode.INVALID_TOPIC_EXCEPTION, name_problem(name))
        twin = self._by_metric_name.get(_metric_name(name))
        if twin is not None:
            return TopicRefusal(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name!r} collides with existing topics: {twin}"
            )
        return None

    def size_refusal(self, partitions: int, replication_factor: int | None = None) -> TopicRefusal | None:
        """Why no topic can be made with so many partitions and replicas; None if one can."""
        if partitions < 1:
            return TopicRefusal(ErrorCode.INVALID_PARTITIONS, f"{partitions} partitions; a topic needs at least 1")
        factor = replication_factor or self._brokers.default_replication_factor
        brokers = len(self._brokers.nodes)
        if factor > brokers:
            wrong = (
                f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot "
                f"be reached because only {brokers} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
            return TopicRefusal(ErrorCode.INVALID_REPLICATION_FACTOR, wrong)
        return self._too_many(partitions)

    def create(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] | None = None,
        *,
        replication_factor: int | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
    ) -> Topic:
        """Make a topic that `refusal` has nothing against.

        ``replicas`` are the brokers that hold each partition; without it they are spread over the brokers.
        """
        if replicas is None:
            factor = replication_factor or self._brokers.default_replication_factor
            replicas = self._spread(partitions, factor)
        topic = Topic(name, self.new_id(), [], dict(configs or {}))
        topic.partitions.extend(self._new_partitions(topic, replicas))
        self._add(topic)
        self._keep_topic(topic)
        for partition in topic.partitions:
            self.keep(partition)
        return topic

    def configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Give a topic these configs, in place of all that it had."""
        topic.configs = configs
        self._keep_topic(topic)

    def growth_refusal(self, topic: Topic, partitions: int) -> TopicRefusal | None:
        """Why a topic cannot have this many partitions; None if it can."""
        now = len(topic.partitions)
        if partitions == now:
            return TopicRefusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {now} partition(s).")
        if partitions < now:
            wrong = f"The topic {topic.name} currently has {now} partition(s); {partitions} would not be an increase."
            return TopicRefusal(ErrorCode.INVALID_PARTITIONS, wrong)
        return self._too_many(partitions - now)

    def grow(self, topic: Topic, partitions: int, replicas: Sequence[Sequence[int]] | None = None) -> None:
        """Give a topic more partitions, as `growth_refusal` allows; ``replicas`` as for `create`, of the new ones."""
        added = partitions - len(topic.partitions)
        if replicas is None:
            replicas = self._spread(added, len(topic.partitions[0].replicas))
        new = self._new_partitions(topic, replicas)
        topic.partitions.extend(new)
        for partition in new:
            self.keep(partition)
        self.partition_count += added
        self.version += 1

    def delete(self, topic: Topic) -> None:
        """Drop a topic and its records."""
        del self._by_name[topic.name]
        del self._by_metric_name[_metric_name(topic.name)]
        del self._by_id[topic.id]
        self.partition_count -= len(topic.partitions)
        self.kept_bytes -= sum(each.log.size_bytes for each in topic.partitions)
        self.version += 1
        self._keeper.drop(_topic_record(topic).place)
        for partition in topic.partitions:
            self._keeper.drop(_partition_record(partition).place)
            self._keeper.drop_log(partition.log.name)

    def move_leader(self, name: str, number: int, to: int | None = None) -> ReplicatedPartition:
        """Let another replica lead a partition; the leader epoch grows. ``to`` None is the replica after the leader.

        A partition with one replica, or moved to its own leader, keeps it in a new epoch. Raises `BadClusterError` if
        there is no such partition or replica.
        """
        partition = self.partition(name, number)
        if partition is None:
            raise BadClusterError(f"the leader of {name}-{number} cannot be moved: there is no such partition")
        replicas = self._running(partition.replicas)
        if to is None:
            after = replicas.index(partition.leader) + 1 if partition.leader in replicas else 0
            to = replicas[after % len(replicas)] if replicas else NO_NODE
        if to not in replicas:
            message = (
                f"broker {to} has no replica of {name}-{number}, or is stopped; brokers that can lead it: {replicas}"
            )
            raise BadClusterError(message)
        if to not in partition.isr:
            partition.sync((*partition.isr, to))  # an unclean election; all replicas are one log
        self._lead(partition, to)
        return partition

    def drop_leader(self, name: str, number: int) -> ReplicatedPartition:
        """Take a partition's leader away, until `move_leader`. Raises `BadClusterError` without such a partition."""
        partition = self.partition(name, number)
        if partition is None:
            raise BadClusterError(f"the leader of {name}-{number} cannot be removed: there is no such partition")
        self._lead(partition, NO_NODE)
        return partition

    def set_isr(self, name: str, number: int, node_ids: Sequence[int]) -> ReplicatedPartition:
        """Let these replicas be in sync, and no others.

        Raises `BadClusterError` if there is no such partition, if one does not hold it or is stopped, or if its leader
        is not among them.
        """
        partition = self.partition(name, number)
        if partition is None:
            raise BadClusterError(f"the in-sync replicas of {name}-{number} cannot be set: there is no such partition")
        there = self._running(partition.replicas)
        if not set(node_ids) <= set(there) or len(set(node_ids)) < len(node_ids):
            message = (
                f"only brokers {there} can be in sync for partition {number} of topic {name!r}, not {list(node_ids)}"
            )
            raise BadClusterError(message)
        if not node_ids or (partition.leader != NO_NODE and partition.leader not in node_ids):
            raise BadClusterError(
                f"broker {partition.leader} leads partition {number} of topic {name!r}, so it must be in sync"
            )
        partition.sync(node_ids)
        self.version += 1
        return partition

    def node_stopped(self, node_id: int) -> list[ReplicatedPartition]:
        """A broker was stopped: others lead its partitions. Those whose leader is another one now, or none."""
        changed = []
        for partition in self._of_node(node_id):
            partition.sync([each for each in partition.isr if each != node_id])
            if partition.leader == node_id:
                self._lead(partition, next(iter(self._running(partition.isr)), NO_NODE))
                changed.append(partition)
        self.version += 1
        return changed

    def node_started(self, node_id: int) -> list[ReplicatedPartition]:
        """A broker runs again: its replicas are in sync, and it leads the partitions that were without a leader.

        The partitions of which clients may read more by that.
        """
        changed = []
        for partition in self._of_node(node_id):
            back = {node_id} if partition.leader != NO_NODE else set()
            if partition.leader == NO_NODE and node_id in {partition.last_leader, *partition.isr}:
                self._lead(partition, node_id)
                back = set(self._running(partition.replicas))  # those that waited for it
            if partition.sync([each for each in partition.replicas if each in back or each in partition.isr]):
                changed.append(partition)
        self.version += 1
        return changed

    def reassign(self, partition: ReplicatedPartition, replicas: Sequence[int]) -> None:
        """Put a partition on other brokers, the preferred leader first; its leader stays if it is among them."""
        partition.replicas = tuple(replicas)
        running = self._running(replicas)
        partition.sync(running)
        if partition.leader not in partition.replicas:
            self._lead(partition, next(iter(running), NO_NODE))
        self.version += 1
        self.keep(partition)

    # ---- over a restart ----

    def keep(self, partition: ReplicatedPartition) -> None:
        """Have a partition kept as it is now: its brokers, and what its log knows beside its batches."""
        if self._keeper is not NOTHING:
            record = _partition_record(partition)
            self._keeper.put(record.place, record)

    def records(self) -> Iterator[TopicRecord | PartitionRecord]:
        """What rebuilds the topics, together with the contents of the logs."""
        for topic in self:
            yield _topic_record(topic)
            yield from map(_partition_record, topic.partitions)

    def load(
        self,
        records: Iterable[TopicRecord],
        partitions: Iterable[PartitionRecord],
        contents: Mapping[LogName, LogContents],
    ) -> None:
        """Have these topics, on brokers that there are; none may be there yet."""
        topics = {each.id: Topic(each.name, each.id, [], each.configs) for each in records}
        for record in sorted(partitions, key=lambda each: each.number):
            topic = topics[record.topic_id]
            (log,) = self._new_logs(topic.configs, [record.log_name])
            log.load(record.log, contents.get(record.log_name, NO_CONTENTS))
            self.kept_bytes += log.size_bytes
            leader = record.replicas[0] if record.leader == NO_NODE else record.leader
            topic.partitions.append(ReplicatedPartition(log, tuple(record.replicas), leader))
        for topic in topics.values():
            self._add(topic)
            self._next_leader += len(topic.partitions)

    # ---- inside ----

    def _add(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_metric_name[_metric_name(topic.name)] = topic.name
        self._by_id[topic.id] = topic
        self.partition_count += len(topic.partitions)
        self.version += 1

    def _keep_topic(self, topic: Topic) -> None:
        record = _topic_record(topic)
        self._keeper.put(record.place, record)

    def _spread(self, partitions: int, factor: int) -> list[tuple[int, ...]]:
        # Each topic begins at another broker, so that topics of one partition do not all have the same leader.
        spread = self._brokers.spread(partitions, factor, start=self._next_leader)
        self._next_leader += partitions
        return spread

    def _new_partitions(self, topic: Topic, replicas: Sequence[Sequence[int]]) -> list[ReplicatedPartition]:
        first = len(topic.partitions)
        logs = self._new_logs(topic.configs, [LogName(topic.id, first + index) for index in range(len(replicas))])
        partitions = []
        for log, brokers in zip(logs, replicas, strict=True):
            running = self._running(brokers)
            leader = next(iter(running), NO_NODE)
            partitions.append(ReplicatedPartition(log, tuple(brokers), leader, tuple(running) or tuple(brokers[:1])))
        return partitions

    def _running(self, node_ids: Sequence[int]) -> list[int]:
        return [each for each in node_ids if (node := self._brokers.node(each)) is not None and not node.is_stopped]

    def _of_node(self, node_id: int) -> Iterator[ReplicatedPartition]:
        return (each for topic in self for each in topic.partitions if node_id in each.replicas)

    def _lead(self, partition: ReplicatedPartition, node_id: int) -> None:
        """Begin a new leader epoch."""
        partition.last_leader = partition.leader if node_id == NO_NODE else NO_NODE
        partition.leader = node_id
        partition.log.epochs.start(partition.leader_epoch + 1, partition.log.end_offset)
        self.version += 1
        self.keep(partition)

    def _too_many(self, added: int) -> TopicRefusal | None:
        if self.partition_count + added > self._max_partitions:
            message = f"{added} more partitions; the limit of all topics together is {self._max_partitions:,}"
            return TopicRefusal(ErrorCode.POLICY_VIOLATION, message)
        return None


def _topic_record(topic: Topic) -> TopicRecord:
    return TopicRecord(name=topic.name, id=topic.id, configs=topic.configs)


def _partition_record(partition: ReplicatedPartition) -> PartitionRecord:
    topic_id, number = partition.log.name
    return PartitionRecord(
        topic_id=topic_id,
        number=number,
        replicas=tuple(partition.replicas),
        leader=partition.leader,
        log=partition.log.record(),
    )
