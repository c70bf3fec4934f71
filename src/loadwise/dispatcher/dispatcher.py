"""The dispatcher of one producer: chooses a partition for each record, batch by batch."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from loadwise.dispatcher.acknowledgements import Acknowledgements, Batch, Measured, Moment
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.keys import partition_of
from loadwise.dispatcher.leases import Lease, lease_from
from loadwise.dispatcher.metrics import Metric
from loadwise.dispatcher.readings import Readings
from loadwise.dispatcher.spread_keys import PartitionOf, SpreadKeys, SpreadTopics
from loadwise.dispatcher.table import NO_LEADER, Table, table_of

BATCH_BYTES = 16_384
"""Kafka's default of ``batch.size``."""

TURN_S = 1.0
"""How long a batch is filled at most, if the client's linger time is not longer."""

_IN_USE = "this dispatcher serves another producer; make a Dispatcher for each"

_RECORD_BYTES = 16
"""What a record takes in a batch besides key and value, roughly."""


class Client(Protocol):
    """What a dispatcher needs of the client that it chooses partitions for."""

    def leaders(self, topic: str) -> Mapping[int, int]:
        """Return the leader of each partition of a topic, `NO_LEADER` without one. Returns at once."""
        ...

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic, 0 if it is unknown. Returns at once."""
        ...


@dataclass(frozen=True, slots=True)
class _Batching:
    """How the client makes batches."""

    bytes: int = BATCH_BYTES
    """Those of a full batch."""
    linger_s: float = 0.0
    turn_s: float = TURN_S
    """How long a batch is filled at most."""


@dataclass(slots=True, eq=False)
class _Turn:
    """A batch that is being filled."""

    node: int
    partition: int
    whole: int
    """Bytes of a full batch."""
    left: int
    """Bytes until it is full."""
    ends_at_s: float
    """When it ends at the latest, so that a batch that no broker takes gets no more."""
    last_bytes: int = 0
    """Those of its last record."""
    batch: Batch | None = None
    """The same batch among those that brokers have not acknowledged."""


@dataclass(slots=True, eq=False)
class _Topic:
    table: Table
    lease: Lease
    """When the table was made."""
    partitions: int
    """How many partitions the client knew then."""
    probes: set[int] = field(default_factory=set)
    """Brokers that get one record in this lease, because nothing is known of them now."""
    blocks: dict[_Block, int] = field(default_factory=dict)
    """The partition of each block of related records that is open."""


@dataclass(slots=True, eq=False)
class _Block:
    """A block of related records."""

    owner: Dispatcher
    outer: _Block | None
    ended: bool = False
    """A task that was made in the block sees it for longer."""

    def innermost_of(self, dispatcher: Dispatcher) -> _Block | None:
        """Return the innermost block of a dispatcher that has not ended."""
        block: _Block | None = self
        while block is not None and (block.ended or block.owner is not dispatcher):
            block = block.outer
        return block


_RELATED: ContextVar[_Block | None] = ContextVar("loadwise_related", default=None)


class Dispatcher:
    """Sends each batch to a broker that has room for it, and records with a key where the client would.

    ``metrics`` are loads of brokers by name, besides ``latency`` and ``in_flight``, which the producer sees itself.
    ``weights`` say how much each of them matters, 1 by default. The table of brokers is rebuilt every ``lease_s``
    seconds. ``spread`` names the topics whose keys are spread over several partitions. Raises `BadDispatcherError`.
    """

    def __init__(
        self,
        *,
        metrics: Mapping[str, Metric] | None = None,
        weights: Mapping[str, float] | None = None,
        lease_s: float = 4.0,
        spread: Mapping[str, SpreadKeys] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, given in (("metrics", metrics), ("weights", weights), ("spread", spread)):
            if given is not None and not isinstance(given, Mapping):
                raise BadDispatcherError(f"{name} is {given!r}; it must be a mapping of names")
        self._readings = Readings(metrics or {}, weights or {})
        seconds: object = lease_s
        if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise BadDispatcherError(f"lease_s is {seconds!r}; it must be a finite number above 0")
        if not callable(clock):
            raise BadDispatcherError(f"clock is {clock!r}; it must be a function that returns seconds")
        self.lease_s = lease_s
        self._spread = SpreadTopics(spread or {})
        self._clock = clock
        self._client: Client | None = None
        self._batching = _Batching()
        self._lock = threading.Lock()
        self._acknowledgements = Acknowledgements()
        self._measured = Measured({}, {})
        self._lease: Lease | None = None
        self._topics: dict[str, _Topic] = {}
        self._turns: dict[str, _Turn] = {}

    def follow(
        self,
        client: Client,
        *,
        batch_bytes: int = BATCH_BYTES,
        linger_s: float = 0.0,
        turn_s: float | None = None,
        home: PartitionOf = partition_of,
    ) -> None:
        """Serve this client, whose batches have this size and linger. Raises `BadDispatcherError` if there is one.

        A batch is filled for ``turn_s`` at most; a client that does not show when it was sent gives its linger time.
        The client places keys by ``home``.
        """
        if self._client is not None and self._client is not client:
            raise BadDispatcherError(_IN_USE)
        self._client = client
        self._spread.home = home
        self._batching = _Batching(max(batch_bytes, 1), linger_s, max(TURN_S, linger_s) if turn_s is None else turn_s)

    def partition(self, topic: str, key: bytes | None = None, size: int = 0) -> int:
        """Return the partition for a record with a value of this size; -1 if the client does not know the topic."""
        if key is not None:
            return self._of_key(topic, key, size)
        if (related := _RELATED.get()) is not None and (block := related.innermost_of(self)) is not None:
            return self._of_block(topic, block)
        taken = size + _RECORD_BYTES
        turn = self._turns.get(topic)
        if turn is None or turn.left < taken or self._clock() >= turn.ends_at_s:
            turn = self._begin(topic, turn, taken)
            if turn is None:
                return NO_LEADER
        turn.last_bytes = taken
        turn.left -= taken
        return turn.partition

    def on_new_batch(self, topic: str, partition: int) -> None:
        """End the turn of this partition: the last record would not go into its batch, but begin another one."""
        turn = self._turns.get(topic)
        if turn is None or turn.partition != partition:
            return
        turn.left += turn.last_bytes
        if turn.left < turn.whole:  # otherwise it has just begun, and this is its batch
            self._begin(topic, turn, turn.last_bytes)

    @contextmanager
    def related(self) -> Iterator[None]:
        """Send records without a key to one partition of the best broker, for each topic, until the block ends.

        The block is that of the thread or task; others are not affected.
        """
        block = _Block(self, _RELATED.get())
        token = _RELATED.set(block)
        try:
            yield
        finally:
            _RELATED.reset(token)
            with self._lock:
                block.ended = True
                for topic in self._topics.values():
                    topic.blocks.pop(block, None)

    def begun(self, node: int, topic: str, partition: int) -> Batch:
        """A batch for this broker was begun; return it, to be acknowledged, refused or failed once."""
        with self._lock:
            batch = self._acknowledgements.begun(node, self._clock(), self._batching.linger_s)
            turn = self._turns.get(topic)
            if turn is not None and turn.partition == partition:
                turn.batch = batch
            return batch

    def acknowledged(self, batch: Batch, took_s: float | None, size: int) -> None:
        """The broker acknowledged a batch of this size, this long after it was begun; None: it was taken back."""
        with self._lock:
            self._acknowledgements.acknowledged(batch, took_s, size, self._clock())

    def refused(self, batch: Batch) -> None:
        """The broker answered with an error of the topic or the records."""
        with self._lock:
            self._acknowledgements.refused(batch, self._clock())

    def failed(self, batch: Batch) -> None:
        """A batch failed because of the broker, or because it did not answer in time."""
        with self._lock:
            self._acknowledgements.failed(batch)

    def forget(self, topic: str) -> None:
        """The client refused a partition of this topic: read its leaders anew, also within a lease."""
        with self._lock:
            self._topics.pop(topic, None)
            self._turns.pop(topic, None)

    def spreads(self, topic: str) -> bool:
        """Return whether the keys of a topic are spread."""
        return topic in self._spread.settings

    def _of_key(self, topic: str, key: bytes, size: int) -> int:
        count = 0 if self._client is None else self._client.partition_count(topic)
        if not count:
            return NO_LEADER
        if topic not in self._spread.settings:
            return self._spread.home(key, count)
        with self._lock:
            return self._spread.partition(topic, key, size + _RECORD_BYTES, count)

    def _of_block(self, topic: str, block: _Block) -> int:
        with self._lock:
            now_s = self._clock()
            entry = self._entry(topic, now_s)
            if entry is None:
                return NO_LEADER
            found = entry.blocks.get(block)
            if found is None:
                found = entry.table.best(self._moment(entry.table.weights, now_s))
                if not block.ended:
                    entry.blocks[block] = found
            return found

    def _begin(self, topic: str, last: _Turn | None, taken: int) -> _Turn | None:
        """Begin the next turn for a record of this size; None if the client does not know the topic."""
        with self._lock:
            if (other := self._turns.get(topic)) is not last:
                return other  # another thread has just begun it
            now_s = self._clock()
            entry = self._entry(topic, now_s)
            if entry is None:
                return None
            table = entry.table
            if last is not None and last.batch is not None:
                self._acknowledgements.close(last.batch, now_s)
            shares = table.shares(self._moment(table.weights, now_s))
            if last is not None:
                table.charge(last.node, (last.whole - last.left) / self._batching.bytes, shares)
            if entry.probes:
                node, whole = entry.probes.pop(), taken
            else:
                node, whole = table.next(shares), max(self._batching.bytes, taken)
            ends_at_s = now_s + self._batching.turn_s
            turn = self._turns[topic] = _Turn(node, table.partition(node), whole, whole, ends_at_s)
            return turn

    def _entry(self, topic: str, now_s: float) -> _Topic | None:
        """Return what is known of a topic, with its table in this lease; None if there are no partitions.

        A topic that was created again may have fewer partitions than the table, and the client takes no others.
        """
        lease = self._lease
        if lease is None or now_s >= lease.ends_at_s:
            lease = self._begin_lease(now_s)
        entry = self._topics.get(topic)
        partitions = 0 if self._client is None else self._client.partition_count(topic)
        if entry is not None and entry.lease is lease and entry.partitions == partitions:
            return entry
        leaders = {} if self._client is None else self._client.leaders(topic)
        nodes = set(leaders.values()) - {NO_LEADER}
        scores = self._readings.scores(topic, leaders, self._measured)
        if nodes:
            slow = self._moment(nodes, now_s).slow
            table = table_of(leaders, scores, slow=slow, last=None if entry is None else entry.table)
        elif entry is not None:
            table = entry.table
        elif leaders:
            table = table_of(leaders)
        else:
            return None
        probes = self._acknowledgements.unheard(table.weights)
        blocks = {} if entry is None or partitions < entry.partitions else entry.blocks
        entry = self._topics[topic] = _Topic(table, lease, partitions, probes, blocks)
        return entry

    def _moment(self, nodes: Iterable[int], now_s: float) -> Moment:
        return self._acknowledgements.moment(nodes, now_s, by_latency=self._readings.by_latency)

    def _begin_lease(self, now_s: float) -> Lease:
        self._measured = self._acknowledgements.measure(now_s)
        moment = self._moment(self._measured.latency_s, now_s)
        self._lease = lease_from(now_s, self._lease, self.lease_s, is_brief=bool(moment.slow))
        self._readings.request(now_s, self.lease_s)
        return self._lease


def free_dispatcher(given: Dispatcher | None) -> Dispatcher:
    """Return the dispatcher, or a new one. Raises `BadDispatcherError` for another object and one in use."""
    dispatcher: object = Dispatcher() if given is None else given
    if not isinstance(dispatcher, Dispatcher):
        raise BadDispatcherError(f"dispatcher is {dispatcher!r}; give a loadwise.Dispatcher, or leave it out")
    if dispatcher._client is not None:
        raise BadDispatcherError(_IN_USE)
    return dispatcher
