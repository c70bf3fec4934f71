"""One partition as a cluster has it: its log, the brokers that hold it, and which of them leads.

Mirrors the leader checks of Kafka's ``Partition``, and KIP-392's ``RackAwareReplicaSelector``. All
replicas are one log: followers lack nothing. One is out of sync only where a test wants it to be, or its broker is
stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadwise.coordinator.cluster.brokers import Brokers
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.protocol.error_codes import ErrorCode

NO_EPOCH = -1
"""The leader epoch of a client that does not tell which one it knows."""

NO_NODE = -1


@dataclass(slots=True, eq=False)
class ReplicatedPartition:
    """A partition; changed only by `loadwise.coordinator.cluster.topics.Topics`, which counts its changes."""

    log: PartitionLog
    replicas: Sequence[int]
    """Ids of the brokers that hold it, the preferred leader first."""
    leader: int
    """Id of the broker that leads it, one of the replicas; `NO_NODE` without a leader."""
    isr: Sequence[int] = ()
    """Ids of the replicas that are in sync; all of them unless others are given. Changed by `sync`."""
    elr: Sequence[int] = ()
    """Ids of the replicas that lack nothing that clients may read, though they are not in sync (KIP-966)."""
    last_leader: int = NO_NODE
    """The last leader of a partition without one: it may lead again."""

    def __post_init__(self) -> None:
        self.isr = self.isr or tuple(self.replicas)
        self.check_watermark()

    @property
    def leader_epoch(self) -> int:
        """How often the leader has changed."""
        return self.log.leader_epoch

    @property
    def is_under_min_isr(self) -> bool:
        """Whether too few replicas are in sync for a record that all of them must have (min.insync.replicas)."""
        return len(self.isr) < min(self.log.config.min_insync_replicas, len(self.replicas))

    def sync(self, isr: Sequence[int]) -> bool:
        """Let these replicas be in sync; whether clients may read more by that.

        While they are too few, clients read nothing new, and those that were in sync before may lead as well (KIP-966).
        """
        before = {*self.isr, *self.elr} - set(isr)
        self.isr = tuple(isr)
        self.elr = tuple(each for each in self.replicas if each in before) if self.is_under_min_isr else ()
        return self.check_watermark()

    def check_watermark(self) -> bool:
        """Have the high watermark stand while too few replicas are in sync; whether clients may read more by that."""
        return self.log.hold(self.is_under_min_isr)

    def refusal(self, node_id: int, current_leader_epoch: int, *, leader_only: bool = True) -> ErrorCode:
        """Whether this broker may answer a client that knows this leader epoch, in the order of Kafka's checks."""
        if current_leader_epoch != NO_EPOCH:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            if current_leader_epoch > self.leader_epoch:
                return ErrorCode.UNKNOWN_LEADER_EPOCH
        answers = node_id == self.leader if leader_only else node_id in self.replicas
        return ErrorCode.NONE if answers else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def preferred_replica(self, brokers: Brokers, node_id: int, rack: str | None) -> int:
        """The broker in the client's rack that it should read from instead; `NO_NODE` if it should read here.

        Only the leader sends clients elsewhere (KIP-392).
        """
        if node_id != self.leader or not rack:
            return NO_NODE
        near = [each for each in self.isr if (node := brokers.node(each)) is not None and node.rack == rack]
        return NO_NODE if not near or self.leader in near else near[0]
