"""One member's part in its group, without its client: its subscription, and its assignment as the leader.

Every client's adapter is a thin layer over a `Participant`, so the same group gets the same assignment, to the byte,
whichever client leads it. Kafka's counterpart is ``ConsumerPartitionAssignor`` with the state that
``AbstractStickyAssignor`` keeps between rebalances.
"""

from __future__ import annotations

import logging
import numbers
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from loadwise.assignor import group_record
from loadwise.assignor.answer import encode
from loadwise.assignor.errors import BadGroupError, UnknownAssignorError
from loadwise.assignor.leader import Leader
from loadwise.assignor.listener import Listener
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LagLoad
from loadwise.assignor.load.polled import PolledLoad
from loadwise.assignor.load.prompt import Prompt
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.model import (
    LARGEST,
    NO_GENERATION,
    NOBODY,
    SMALLEST_CAPACITY,
    Assignment,
    GroupSnapshot,
    Member,
)
from loadwise.assignor.staging import stage
from loadwise.assignor.strategy import AnyChoice, Strategy, chosen
from loadwise.assignor.subscription import JoinedMember, read_members, write_subscription
from loadwise.assignor.targets import Targets
from loadwise.assignor.troubles import Troubles
from loadwise.protocol.live_notes import MemberNotes

log = logging.getLogger(__name__)

_WATCHING = "Watching the load"
_PATIENCE_S = 1.0


class ClusterView(Protocol):
    """The leader's view of the cluster: its client's metadata."""

    def partition_count(self, topic: str) -> int | None:
        """Return the topic's number of partitions; None without metadata."""
        ...

    def replica_racks(self, topic: str) -> Sequence[Sequence[str]]:
        """Return the racks of each partition's replicas; empty if the brokers have no racks."""
        ...


class Participant:
    """The state and the decisions of one member. Not thread-safe: its client calls it from one thread.

    ``assignor`` is a name on the wire, an algorithm (built in or the user's own), or a list of these. The members of a
    group use the first name that all of them have. ``capacity`` and ``load`` matter to algorithms whose `Traits` need
    them.

    Raises `UnknownAssignorError`, `BadGroupError` for a capacity that is not above 0, and `TypeError` for an argument
    of the wrong type.
    """

    _capacity: float

    def __init__(
        self,
        assignor: AnyChoice,
        *,
        capacity: float | None = None,
        rack: str | None = None,
        load: LoadSource | None = None,
    ) -> None:
        self.leader: Leader | None = None
        """Keeps the load even while this member leads, if `lead_by` made it."""
        self.targets = Targets(chosen(assignor), None)
        """Makes the assignments while this member leads, and counts those without a load."""
        self._elected: Strategy | None = None
        self._capacity = 1.0
        self._capacity_given = False
        if capacity is not None:
            self.capacity = capacity
        self.rack = rack or None
        self.load = load
        self.listener: Listener | None = None
        """Calls the user's ``on_decision``; None without one."""
        self.live: LiveSettings | None = None
        """When that requests a rebalance; None: never."""
        self.led = 0
        """The number of rebalances that this member led."""
        self.assigning_s = 0.0
        """The total time that this member took to decide them."""
        self.generation = NO_GENERATION
        """The generation of the newest assignment; `NO_GENERATION` before the first, or if the client has none."""
        self._owned: Mapping[str, Sequence[int]] | None = None
        self._unfinished: Assignment | None = None
        """The target of a cooperative rebalance while it waits for its second round."""
        self._troubles = Troubles()

    @property
    def load(self) -> LoadSource | None:
        """Where the load comes from; None without one."""
        load = self.targets.load
        return load.source if isinstance(load, Prompt) else load

    @load.setter
    def load(self, load: LoadSource | None) -> None:
        self.targets.load = load if load is None or load is self.leader else Prompt(load)

    def answer_within(self, session_timeout_s: float) -> None:
        """Give the user's load source a tenth of the session timeout, or a second if that is shorter."""
        if isinstance(self.targets.load, Prompt):
            self.targets.load.limit_s = min(_PATIENCE_S, session_timeout_s / 10)

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """The strategies that this member offers its group, in order of preference."""
        return tuple(self.targets.algorithms)

    @property
    def strategy(self) -> Strategy:
        """The strategy that the group uses; the preferred one until this is known."""
        return self.strategies[0] if self._elected is None else self._elected

    @property
    def cooperative(self) -> bool:
        """Whether this member keeps its partitions while it joins. One eager name in its list makes it eager (KIP-429).

        The group may elect that name and then assign this member's partitions to others.
        """
        return all(strategy.cooperative for strategy in self.strategies)

    @property
    def load_aware(self) -> bool:
        """Whether one of the strategies uses loads."""
        return any(strategy.traits.load for strategy in self.strategies)

    @property
    def capacity(self) -> float:
        """The member's capacity relative to the others. A change takes effect with the next join.

        Without a given capacity, it is 1 for leaders that do not learn capacities.

        Setting it raises `TypeError` unless it is a number, `BadGroupError` unless it is finite and above 0.
        """
        return self._capacity

    @capacity.setter
    def capacity(self, capacity: float) -> None:
        if not isinstance(capacity, numbers.Real) or isinstance(capacity, bool):
            raise TypeError(f"capacity is {capacity!r}; it must be a number above 0")
        if not SMALLEST_CAPACITY <= capacity <= LARGEST:
            raise BadGroupError(
                f"capacity is {capacity}; the capacity of a member must be a finite number above 0"
                f" ({SMALLEST_CAPACITY:g} to {LARGEST:g})"
            )
        self._capacity = float(capacity)
        self._capacity_given = True

    def lead_by(
        self,
        lag: LagLoad,
        live: LiveSettings | bool,
        *,
        slack_s: float | None,
        max_poll_s: float = 300.0,
        own: PolledLoad | None = None,
        on_decision: Callable[[Decision], None] | None = None,
    ) -> None:
        """Use the group's demand, for which ``lag`` reads offsets, and keep it even while this member leads.

        ``live`` configures when a rebalance is requested. ``slack_s`` is the approximate time between two commits of
        a member, None if the application commits by itself; ``max_poll_s`` is the poll timeout after which a member
        leaves the group. ``own`` are the user's own loads.
        Raises `TypeError` for a ``live`` of the wrong type.
        """
        self.live = LiveSettings() if live is True else live or None
        if self.live is not None and not isinstance(self.live, LiveSettings):
            raise TypeError(f"live is {live!r}; it must be a LiveSettings, True or False")
        weighted = next(strategy for strategy in self.strategies if strategy.traits.load)
        self.leader = Leader(
            lag,
            self.targets.algorithms[weighted],
            self.live,
            cooperative=self.cooperative,
            slack_s=slack_s,
            max_poll_s=max_poll_s,
            own=own,
        )
        if on_decision is not None:
            self.listener = Listener(on_decision)
            self.leader.decided = self.listener.tell
        self.load = self.leader

    def close(self) -> None:
        """End the calls of ``on_decision``; wait up to a second for one."""
        if self.listener is not None:
            self.listener.close()

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load; None while another member leads."""
        return None if self.leader is None or not self.leader.leads else self.leader.decision

    def subscription(
        self,
        topics: Iterable[str],
        *,
        owned: Mapping[str, Sequence[int]] | None = None,
        generation: int | None = None,
        protocol: str | None = None,
    ) -> bytes:
        """Return the subscription bytes for one strategy, the preferred one if ``protocol`` is None.

        ``owned`` are the client's current partitions. ``generation`` is the newest that it joined, which may be newer
        than its assignment; None if the client does not have it. (Java: ``ConsumerCoordinator.metadata``.)
        """
        joining = write_subscription(
            self._strategy(protocol),
            frozenset(topics),
            owned=self._owned if owned is None else owned,
            generation=self.generation if generation is None else generation,
            capacity=self.capacity,
            rack=self.rack,
            holds=self.cooperative,
            notes=self._notes(),
        )
        return joining.encode()

    def assigned(
        self,
        partitions: Mapping[str, Sequence[int]],
        generation: int,
        protocol: str | None = None,
        *,
        user_data: bytes | None = None,
    ) -> None:
        """Store the leader's assignment; ``generation`` is `NO_GENERATION` if the client does not have it.

        ``user_data`` is the user data of the assignment.
        """
        self._elected = self._strategy(protocol)
        self._owned = {topic: list(numbers) for topic, numbers in partitions.items()}
        self.generation = generation
        if self.leader is None:
            return
        try:
            self.leader.joined(user_data, generation)
        except Exception as error:  # noqa: BLE001 (whatever fails in watching the load, the member goes on reading)
            self.targets.failed(_WATCHING, error)

    @property
    def to_resume(self) -> bool:
        """Whether this member leads although no JoinGroup said so, because it was restarted: see `resume`."""
        return self.leader is not None and self.leader.to_resume

    def resume(
        self,
        described: Sequence[tuple[JoinedMember, Mapping[str, Sequence[int]]]],
        cluster: ClusterView,
        *,
        protocol: str | None = None,
    ) -> None:
        """Watch the group's load again after a restart, with the members and owners of a DescribeGroups answer."""
        leader = self.leader
        if leader is None:
            return
        given = {member.id: owned for member, owned in described}
        told = read_members(self._strategy(protocol), [member for member, _ in described])
        try:
            members = [
                replace(member, owned=given[member.id], generation=self.generation) for member in leader.equip(told)
            ]
            counts = _counts(members, cluster)
            # A consumer that has just started may lack metadata, but every partition was assigned to a member.
            for owned in given.values():
                for topic, numbers in owned.items():
                    counts[topic] = max(counts.get(topic, 0), max(numbers, default=-1) + 1)
            group = GroupSnapshot.of(members, counts)
            leader.resume(Assignment(group, group.owner), self.generation)
        except Exception as error:  # noqa: BLE001 (whatever fails in watching the load, the member goes on reading)
            self.targets.failed(_WATCHING, error)

    def assign(
        self, joined: Iterable[JoinedMember], cluster: ClusterView, *, protocol: str | None = None
    ) -> dict[str, bytes]:
        """As the leader, return every member's assignment bytes. Topics without metadata wait for a later rebalance.

        ``protocol`` is the elected strategy, the preferred one if None.
        """
        began = time.perf_counter()
        strategy = self._elected = self._strategy(protocol)
        joined = list(joined)
        told = read_members(strategy, joined)
        leader = self.leader if strategy.traits.load else None
        members = [member for member, _ in told]
        notes = None
        if leader is not None:
            try:
                members = leader.equip(told)
            except Exception as error:  # noqa: BLE001 (whatever fails in watching the load, the group waits for an answer)
                self.targets.failed(_WATCHING, error)
                leader = None
        counts = _counts(members, cluster)
        racks = None
        if any(member.rack is not None for member in members):
            racks = {topic: replicas for topic in counts if (replicas := cluster.replica_racks(topic))}
        group = GroupSnapshot.of(members, counts, racks=racks)
        begun = self._begun(group)
        target = self.targets.of(strategy, group) if begun is None else begun
        if leader is not None:
            try:
                elected = self.targets.algorithms[strategy]
                notes = leader.lead(target, algorithm=elected, second_round=begun is not None)
                self.targets.worked(_WATCHING)
            except Exception as error:  # noqa: BLE001 (as above)
                self.targets.failed(_WATCHING, error)
        answer = encode(self._staged(target) if strategy.cooperative else target, notes)
        self.led += 1
        self.assigning_s += time.perf_counter() - began
        too_large = group_record.warning(group_record.estimated_bytes(joined, answer))
        if too_large is None:
            self._troubles.over("The group's record")
        elif self._troubles.begins("The group's record"):
            log.error("%s", too_large)
        return answer

    def _notes(self) -> MemberNotes:
        if self.leader is None:
            return MemberNotes(capacity_given=self._capacity_given)
        return self.leader.joining(capacity_given=self._capacity_given)

    def _staged(self, target: Assignment) -> Assignment:
        """Return the part of a target that may be assigned now; keep the target for the next round."""
        staged = stage(target)
        self._unfinished = None if np.array_equal(staged.owner, target.owner) else target
        return staged

    def _strategy(self, protocol: str | None) -> Strategy:
        return self.strategies[0] if protocol is None else _offered(self.strategies, protocol)

    def _begun(self, group: GroupSnapshot) -> Assignment | None:
        """Return the target if this is the second round of its cooperative rebalance, whatever the load is now."""
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is None or not _goes_on(unfinished, group):
            return None
        return replace(unfinished, group=replace(group, load=unfinished.group.load))


def _counts(members: Sequence[Member], cluster: ClusterView) -> dict[str, int]:
    """Return the number of partitions of each subscribed topic with metadata."""
    topics = set().union(*{id(member.topics): member.topics for member in members}.values())
    return {topic: count for topic in topics if (count := cluster.partition_count(topic)) is not None}


def _goes_on(target: Assignment, group: GroupSnapshot) -> bool:
    """Whether this is the target's group half-way: same members, each partition unowned or with its target."""
    before = target.group
    return (
        group.members == before.members
        and group.same_partitions(before)
        and bool(((group.owner == NOBODY) | (group.owner == target.owner)).all())
    )


def _offered(strategies: Sequence[Strategy], protocol: str) -> Strategy:
    for strategy in strategies:
        if strategy.name == protocol:
            return strategy
    names = ", ".join(strategy.name for strategy in strategies)
    raise UnknownAssignorError(f"the group elected {protocol!r}, which this member does not offer; it offers {names}")
