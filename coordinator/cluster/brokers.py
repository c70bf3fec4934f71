"""The brokers of the cluster, and which of them does what: who holds a partition, who coordinates a group.

All brokers are one process with one state; each is an address of its own, and answers only for what is its own, so that
clients have to find their way as they do in a real cluster. Spreading mirrors Kafka's ``StripedReplicaPlacer``: leaders
go round the racks, and a partition's replicas are in as many racks as there are. Groups go by the hash of their id to a
partition of ``__consumer_offsets``, whose leader is their coordinator (``GroupCoordinatorService.partitionFor``), and
transactional ids likewise to one of ``__transaction_state``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from loadwise.coordinator.cluster.records import CoordinatorsRecord
from loadwise.coordinator.errors import BadClusterError
from loadwise.coordinator.keeper import NOTHING, Keeper

FIRST_NODE_ID = 1
"""Id of the first broker; the others count up from it."""

COORDINATOR_PARTITIONS = 50
"""Partitions of each of the two topics (offsets.topic.num.partitions, transaction.state.log.num.partitions)."""

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
CLUSTER_METADATA = "__cluster_metadata"
"""The topic of Kafka's controllers, which clients cannot create."""
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""Topics that brokers write and clients only read (``Topic.isInternal``)."""

MAX_BROKERS = 1000
"""Most brokers: each listens on a port of its own. Kafka has no such limit."""

_MOST_REPLICAS = 3


@dataclass(slots=True, eq=False)
class Node:
    """One broker as clients see it."""

    id: int
    rack: str | None
    """Its broker.rack; None if it is in none."""
    host: str = ""
    """Host that clients connect to; set when it listens."""
    port: int = 0
    is_stopped: bool = False


class Brokers:
    """The brokers, and which of them coordinates which groups.

    ``racks`` are dealt out to the brokers in a circle; none means that the brokers are in no rack. Raises
    `BadClusterError` if there is no broker, if there are more than `MAX_BROKERS`, or for a rack without one.
    """

    def __init__(
        self, brokers: int = 1, racks: Sequence[str] = (), *, default_replication_factor: int | None = None
    ) -> None:
        if brokers < 1:
            raise BadClusterError(f"{brokers} brokers; a cluster has at least 1")
        if brokers > MAX_BROKERS:
            raise BadClusterError(f"{brokers:,} brokers; a cluster has at most {MAX_BROKERS:,} here")
        if len(racks) > brokers:
            raise BadClusterError(f"{len(racks)} racks for {brokers} brokers; give at most one rack per broker")
        self.nodes = tuple(
            Node(FIRST_NODE_ID + index, racks[index % len(racks)] if racks else None) for index in range(brokers)
        )
        self.cluster_id = "loadwise"
        self._by_id = {node.id: node for node in self.nodes}
        self._order = _by_turns(self.nodes)
        self.default_replication_factor = default_replication_factor or min(brokers, _MOST_REPLICAS)
        """Replicas of a partition whose creator gives no number: on every broker, no more than most clusters have."""
        self.keeper: Keeper = NOTHING
        """Keeps which of them are coordinators."""
        self._coordinators: dict[str, list[int]] = {}
        self.load(())

    @property
    def controller(self) -> Node:
        """The broker that Metadata names as the controller; every broker does what a controller does."""
        return next(iter(self.running), self.nodes[0])

    @property
    def running(self) -> Sequence[Node]:
        """The brokers that are not stopped."""
        return [node for node in self.nodes if not node.is_stopped]

    def node(self, node_id: int) -> Node | None:
        """The broker of this id, or None."""
        return self._by_id.get(node_id)

    def spread(self, partitions: int, factor: int, *, start: int = 0) -> list[tuple[int, ...]]:
        """Who holds each of some partitions, the leader first; ``start`` is the broker to begin at.

        ``factor`` is from 1 to the number of brokers. O(partitions * brokers).
        """
        order = self._order
        return [
            _replicas(_turned(order, start + index), factor, turn=(start + index) // len(order))
            for index in range(partitions)
        ]

    def misplaced(
        self, replicas: Sequence[Sequence[int]], factor: int | None = None, *, is_new: bool = True
    ) -> str | None:
        """What is wrong with a list of brokers a partition; None if partitions can be there.

        ``factor`` is how many brokers each must have; None: as many as the first. With ``is_new`` each needs a leader
        now. Mirrors ``ReplicationControlManager.validateManualPartitionAssignment``.
        """
        for number, each in enumerate(replicas):
            factor = len(each) if factor is None else factor
            unknown = [node_id for node_id in each if node_id not in self._by_id]
            if not each:
                return f"the brokers of new partition {number} are an empty list"
            if unknown:
                return f"new partition {number} is to be on brokers {unknown}, but there are only {list(self._by_id)}"
            if len(set(each)) < len(each):
                return f"new partition {number} is to be on one broker twice: {list(each)}"
            if len(each) != factor:
                return f"new partition {number} is to have {len(each)} replicas; the others have {factor}"
            if is_new and len(self.stopped_of(each)) == len(each):
                return f"new partition {number} is to be on brokers {list(each)}, which are all stopped"
        return None

    def stopped_of(self, node_ids: Sequence[int]) -> list[int]:
        """Those of some brokers that are stopped."""
        return [each for each in node_ids if self._by_id[each].is_stopped]

    def stop(self, node_id: int) -> Sequence[tuple[str, int]]:
        """Stop a broker; the next ones that run coordinate what it did. Answers which partitions of which topic moved.

        The last one that runs leaves them with itself, for when it is back. Raises `BadClusterError` if there is no
        such broker, or it is stopped already.
        """
        node = self._by_id.get(node_id)
        if node is None or node.is_stopped:
            running = [each.id for each in self.running]
            raise BadClusterError(f"there is no running broker {node_id}; these are running: {running}")
        node.is_stopped = True
        others = self.running
        moved = []
        for topic, coordinators in self._coordinators.items() if others else ():
            mine = [partition for partition, each in enumerate(coordinators) if each == node_id]
            for turn, partition in enumerate(mine):
                coordinators[partition] = others[turn % len(others)].id
                moved.append((topic, partition))
            if mine:
                self._keep_coordinators(topic)
        return moved

    def start(self, node_id: int) -> None:
        """Let a broker run again; it coordinates nothing until it is given something.

        Raises `BadClusterError` if there is no such broker, or it runs already.
        """
        node = self._by_id.get(node_id)
        if node is None or not node.is_stopped:
            stopped = [each.id for each in self.nodes if each.is_stopped]
            raise BadClusterError(f"there is no stopped broker {node_id}; these are stopped: {stopped or 'none'}")
        node.is_stopped = False

    def coordinators(self, topic: str) -> Sequence[int]:
        """The broker that coordinates what lies in each partition of ``topic``, by its id."""
        return tuple(self._coordinators[topic])

    def coordinator_of(self, key: str, topic: str = CONSUMER_OFFSETS) -> Node:
        """The broker that answers for a group, or for a transactional id with ``topic`` `TRANSACTION_STATE`."""
        return self._by_id[self._coordinators[topic][coordinator_partition(key)]]

    def coordinates(self, node_id: int, key: str, topic: str = CONSUMER_OFFSETS) -> bool:
        """Whether a broker is the one of `coordinator_of`; if not, it answers NOT_COORDINATOR."""
        return self.coordinator_of(key, topic).id == node_id

    def move_coordinator(self, key: str, to: int | None = None, topic: str = CONSUMER_OFFSETS) -> int:
        """Let another broker answer for a group or transactional id, and for all that share its partition of ``topic``.

        ``to`` None is the next broker. Answers with that partition's number. Raises `BadClusterError` if there is no
        such broker.
        """
        partition = coordinator_partition(key)
        coordinators = self._coordinators[topic]
        running = [node.id for node in self.running]
        if to is None:
            to = next((each for each in running if each > coordinators[partition]), running[0] if running else None)
        if to is None or to not in running:
            kind = "group" if topic == CONSUMER_OFFSETS else "transactional id"
            raise BadClusterError(f"the coordinator of {kind} {key!r} cannot move: there is no running broker {to}")
        coordinators[partition] = to
        self._keep_coordinators(topic)
        return partition

    def _keep_coordinators(self, topic: str) -> None:
        coordinators = self._coordinators[topic]
        record = CoordinatorsRecord(topic=topic, node_ids=tuple(coordinators))
        if coordinators == self._first_coordinators():
            self.keeper.drop(record.place)
        else:
            self.keeper.put(record.place, record)

    def records(self) -> Iterator[CoordinatorsRecord]:
        """What rebuilds which of them are coordinators, where that was changed."""
        for topic, node_ids in self._coordinators.items():
            if node_ids != self._first_coordinators():
                yield CoordinatorsRecord(topic=topic, node_ids=tuple(node_ids))

    def load(self, records: Iterable[CoordinatorsRecord]) -> None:
        """Have these coordinators, which are brokers that there are, and elsewhere those of the beginning; all run."""
        for node in self.nodes:
            node.is_stopped = False
        self._coordinators = {topic: self._first_coordinators() for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)}
        for record in records:
            self._coordinators[record.topic] = list(record.node_ids)

    def _first_coordinators(self) -> list[int]:
        return [self._order[index % len(self.nodes)].id for index in range(COORDINATOR_PARTITIONS)]


@lru_cache(maxsize=10_000)
def coordinator_partition(key: str) -> int:
    """The partition of ``__consumer_offsets`` or ``__transaction_state`` that a group's or id's records are in."""
    value = _java_hash(key)
    return 0 if value == -(2**31) else abs(value) % COORDINATOR_PARTITIONS  # Utils.abs: there is no -MIN_VALUE


def _java_hash(text: str) -> int:
    """Java's ``String.hashCode``, over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def _by_turns(nodes: Sequence[Node]) -> list[Node]:
    """The brokers so that neighbours are in different racks as far as can be: one of each rack, then the next."""
    racks: dict[str | None, list[Node]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node)
    return [node for turn in zip_longest(*racks.values()) for node in turn if node is not None]


def _turned(order: Sequence[Node], start: int) -> list[Node]:
    first = start % len(order)
    return [*order[first:], *order[:first]]


def _replicas(candidates: Sequence[Node], factor: int, turn: int) -> tuple[int, ...]:
    """The leader is the first candidate; the followers change from turn to turn, so that they are spread too."""
    leader, *others = candidates
    followers = _turned(others, turn) if others else []
    chosen = [leader]
    for may_share_a_rack in (False, True):
        racks = {node.rack for node in chosen}
        for node in followers:
            if len(chosen) < factor and node not in chosen and (may_share_a_rack or node.rack not in racks):
                chosen.append(node)
                racks.add(node.rack)
    return tuple(node.id for node in chosen)
