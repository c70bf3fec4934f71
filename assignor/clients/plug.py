"""The part of a client's assignor object that all clients share, and its cluster metadata for the leader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar

from loadwise.assignor.live.decision import Decision
from loadwise.assignor.model import NO_GENERATION
from loadwise.assignor.participant import Participant
from loadwise.assignor.rebalances import Rebalances
from loadwise.assignor.strategy import Strategy
from loadwise.assignor.subscription import JoinedMember


class ClientAssignor:
    """One of our assignors for ``partition_assignment_strategy=[...]``. Each consumer needs its own object."""

    replicas: ClassVar[str]
    """The client's name for the replicas in a partition's metadata."""

    def __init__(self, participant: Participant, strategy: Strategy | None = None) -> None:
        self.participant = participant
        """The member without its client."""
        self.strategy = participant.strategies[0] if strategy is None else strategy
        """Which of the member's strategies it serves."""

    @property
    def name(self) -> str:
        """The assignor's name on the wire."""
        return self.strategy.name

    @property
    def rebalances(self) -> Rebalances:
        """The rebalances that this member led, and what it decided."""
        return Rebalances(self.participant)

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None while another member leads."""
        return self.participant.explain()

    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return the encoded subscription; the client sends bytes as they are."""
        owned: defaultdict[str, list[int]] | None = None
        generation = None
        if self.participant.cooperative:
            generation = self._joined_generation()
            if (held := self._held_partitions()) is not None:
                owned = defaultdict(list)
                for topic, partition in held:
                    owned[topic].append(partition)
        return self.participant.subscription(topics, owned=owned, generation=generation, protocol=self.name)

    def assign(self, cluster: Any, members: Any) -> dict[str, bytes]:
        """As the leader, return every member's assignment; the client sends bytes as they are."""
        return self.lead(cluster, self._read(members))

    def lead(self, cluster: Any, joined: Sequence[JoinedMember]) -> dict[str, bytes]:
        """Return every member's assignment, with all that the JoinGroup answer has of the members."""
        return self.participant.assign(joined, ClientMetadata(cluster, self.replicas), protocol=self.name)

    def resume(self, cluster: Any, described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]]) -> None:
        """Watch the group again that this member already led before it was restarted."""
        self.participant.resume(described, ClientMetadata(cluster, self.replicas), protocol=self.name)

    def follow(self, consumer: Any) -> None:
        """Read the held partitions and the generation from the client's consumer or coordinator."""
        raise NotImplementedError

    def _assigned(self, partitions: Any, generation: int | None, user_data: bytes) -> None:
        generation = NO_GENERATION if generation is None else generation
        self.participant.assigned(dict(partitions), generation, self.name, user_data=user_data or None)

    def _held_partitions(self) -> Iterable[tuple[str, int]] | None:
        """Return the partitions that the consumer holds now; None if it does not provide them."""
        raise NotImplementedError

    def _joined_generation(self) -> int | None:
        """Return the newest generation that the consumer joined; None if it does not provide it."""
        raise NotImplementedError

    def _read(self, members: Any) -> Sequence[JoinedMember]:
        """Return the members as the client passes them."""
        raise NotImplementedError


class ClientMetadata:
    """The `loadwise.assignor.participant.ClusterView` over a client's ``ClusterMetadata``.

    kafka-python's and aiokafka's differ in one name only: ``replicas``, the field with the broker ids of a partition's
    replicas in the client's own record.
    """

    def __init__(self, cluster: Any, replicas: str) -> None:
        self._cluster = cluster
        self._replicas = attrgetter(replicas)

    def partition_count(self, topic: str) -> int | None:
        """Return the topic's number of partitions; None without metadata."""
        partitions = self._cluster.partitions_for_topic(topic)
        return None if partitions is None else len(partitions)

    def replica_racks(self, topic: str) -> Sequence[Sequence[str]]:
        """Return the racks of each partition's replicas; empty if the brokers have no racks."""
        # There is no public way to read the replicas.
        partitions: Mapping[int, Any] = self._cluster._partitions.get(topic, {})
        racks = [
            [
                broker.rack
                for node in self._replicas(partitions[number])
                if (broker := self._cluster.broker_metadata(node)) is not None and broker.rack
            ]
            for number in sorted(partitions)
        ]
        return racks if any(racks) else []
