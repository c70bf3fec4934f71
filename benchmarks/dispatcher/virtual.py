"""Producers in virtual time: ``python -m benchmarks.dispatcher.virtual``. The same numbers on every machine.

Three brokers lead 50, 25 and 15 of 90 partitions. A broker answers requests one after the other; each takes a time of
its own and one for its bytes. The producer's model is that of Kafka's clients: a queue of batches for each partition,
requests with a batch of each partition that is ready, five in flight, and a buffer that lets ``send`` wait. Only the
choice of the partition differs:

random     kafka-python and aiokafka: any partition for each record
sticky     KIP-480: a random partition until its batch is full or sent
adaptive   Java since 3.3 (KIP-794): a partition by the lengths of the queues, until it got a batch's bytes
loadwise   this dispatcher
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from statistics import mean
from typing import Protocol

from benchmarks.dispatcher.cluster import LEADS, SLOWED
from loadwise import Dispatcher
from loadwise.dispatcher.acknowledgements import Batch

RECORD_BYTES = 516
BATCH_BYTES = 16_384
REQUEST_BYTES = 1 << 20
BUFFER_BYTES = 32 << 20
IN_FLIGHT = 5
TICK_S = 0.001
LINGER_S = 0.005
LEADERS = dict(enumerate(broker for broker, count in LEADS.items() for _ in range(count)))


@dataclass(slots=True, eq=False)
class _Batch:
    partition: int
    began_s: float
    sent_s: list[float] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return (len(self.sent_s) + 1) * RECORD_BYTES > BATCH_BYTES


@dataclass(slots=True, eq=False)
class _Broker:
    """A broker, and the producer's connection to it."""

    request_s: float
    bytes_per_s: float
    still_s: float = 0.0
    """How long it stands still, then works, by turns."""
    requests: deque[tuple[float, list[_Batch]]] = field(default_factory=deque)
    """Those in flight, each with the time of its answer."""

    def send(self, batches: list[_Batch], now_s: float) -> None:
        begins_s = max(now_s, self.requests[-1][0] if self.requests else 0.0)
        size = sum(len(batch.sent_s) for batch in batches) * RECORD_BYTES
        self.requests.append((self._worked(begins_s, self.request_s + size / self.bytes_per_s), batches))

    def _worked(self, begins_s: float, work_s: float) -> float:
        """Return when so much work is done."""
        ends_s = begins_s + work_s
        if self.still_s:
            period, within_s = divmod(begins_s, 2 * self.still_s)
            done_s = min(within_s, self.still_s) + work_s  # of the periods' working halves, which come first
            ends_s = 2 * self.still_s * (period + done_s // self.still_s) + done_s % self.still_s
        return ends_s


class Policy(Protocol):
    """How a producer chooses partitions."""

    def partition(self, producer: Producer) -> int:
        """Return the partition of the next record."""
        ...


class Producer:
    """A producer that is played in ticks."""

    def __init__(self, policy: Callable[[Producer], Policy], brokers: Mapping[int, _Broker], rate: float) -> None:
        self.now_s = 0.0
        self.brokers = brokers
        self.queues: dict[int, deque[_Batch]] = {partition: deque() for partition in LEADERS}
        self.taken_s: list[tuple[float, float]] = []
        """When each record was acknowledged, and how long that took."""
        self.on_begin: Callable[[_Batch], None] = lambda _: None
        self.on_acknowledged: Callable[[_Batch], None] = lambda _: None
        self._policy = policy(self)
        self._rate = rate
        self._buffered = 0
        self._due = 0.0
        self._waiting: deque[float] = deque()

    def play(self, seconds: float) -> None:
        """Let so much time pass."""
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            self._due += self._rate * TICK_S
            while self._due >= 1:
                self._due -= 1
                self._waiting.append(self.now_s)
            while self._waiting and self._buffered < BUFFER_BYTES:
                self._append(self._policy.partition(self), self._waiting.popleft())
            self._send()
            self._receive()

    def is_open(self, partition: int) -> bool:
        """Return whether the next record would go into a batch that has been begun."""
        queue = self.queues[partition]
        return bool(queue) and not queue[-1].full

    def _append(self, partition: int, began_s: float) -> None:
        if not self.is_open(partition):
            batch = _Batch(partition, self.now_s)
            self.queues[partition].append(batch)
            self.on_begin(batch)
        self.queues[partition][-1].sent_s.append(began_s)
        self._buffered += RECORD_BYTES

    def _send(self) -> None:
        ready: dict[int, list[_Batch]] = {}
        for partition, queue in self.queues.items():
            if queue and (len(queue) > 1 or queue[0].full or self.now_s - queue[0].began_s >= LINGER_S):
                ready.setdefault(LEADERS[partition], []).append(queue[0])
        for node, batches in ready.items():
            if len(self.brokers[node].requests) < IN_FLIGHT:
                batches = batches[: REQUEST_BYTES // BATCH_BYTES]  # noqa: PLW2901 (those that fit)
                for batch in batches:
                    self.queues[batch.partition].popleft()
                self.brokers[node].send(batches, self.now_s)

    def _receive(self) -> None:
        for broker in self.brokers.values():
            while broker.requests and broker.requests[0][0] <= self.now_s:
                for batch in broker.requests.popleft()[1]:
                    self._buffered -= len(batch.sent_s) * RECORD_BYTES
                    self.taken_s += [(self.now_s, self.now_s - sent_s) for sent_s in batch.sent_s]
                    self.on_acknowledged(batch)


class _RandomPartition:
    def __init__(self, _: Producer) -> None:
        self._random = Random(1)

    def partition(self, _: Producer) -> int:
        return self._random.randrange(len(LEADERS))


class _Sticky:
    def __init__(self, _: Producer) -> None:
        self._random = Random(1)
        self._current = 0

    def partition(self, producer: Producer) -> int:
        if not producer.is_open(self._current):
            self._current = self._random.randrange(len(LEADERS))
        return self._current


class _Adaptive:
    """Java's: it leaves a partition after a batch's bytes, once its batch is ready, and after twice that anyhow."""

    def __init__(self, _: Producer) -> None:
        self._random = Random(1)
        self._current = 0
        self._bytes = 0

    def partition(self, producer: Producer) -> int:
        if (self._bytes >= BATCH_BYTES and not producer.is_open(self._current)) or self._bytes >= 2 * BATCH_BYTES:
            lengths = [len(queue) for queue in producer.queues.values()]
            most = max(lengths) + 1
            [self._current] = self._random.choices(range(len(LEADERS)), [most - length for length in lengths])
            self._bytes = 0
        self._bytes += RECORD_BYTES
        return self._current


class _Loadwise:
    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._dispatcher = Dispatcher(clock=lambda: producer.now_s)
        self._dispatcher.follow(self, batch_bytes=BATCH_BYTES, linger_s=LINGER_S)
        self._begun_of: dict[_Batch, Batch] = {}
        producer.on_begin = self._begun
        producer.on_acknowledged = self._acknowledged

    def partition(self, producer: Producer) -> int:
        found = self._dispatcher.partition("t", None, RECORD_BYTES - 16)
        if not producer.is_open(found):
            self._dispatcher.on_new_batch("t", found)
            found = self._dispatcher.partition("t", None, RECORD_BYTES - 16)
        return found

    def leaders(self, _: str) -> Mapping[int, int]:
        return LEADERS

    def partition_count(self, _: str) -> int:
        return len(LEADERS)

    def _begun(self, batch: _Batch) -> None:
        self._begun_of[batch] = self._dispatcher.begun(LEADERS[batch.partition], "t", batch.partition)

    def _acknowledged(self, batch: _Batch) -> None:
        size = len(batch.sent_s) * RECORD_BYTES
        self._dispatcher.acknowledged(self._begun_of.pop(batch), self._producer.now_s - batch.began_s, size)


POLICIES: dict[str, Callable[[Producer], Policy]] = {
    "random": _RandomPartition,
    "sticky": _Sticky,
    "adaptive": _Adaptive,
    "loadwise": _Loadwise,
}


@dataclass(frozen=True, slots=True)
class Played:
    """What a producer saw in one scene."""

    records_per_s: float
    mean_ms: float
    p99_ms: float


def play(
    policy: str,
    *,
    rate: float,
    seconds: float,
    slowed_ms: float = 0.0,
    weaker: float = 1.0,
    still_ms: float = 0.0,
    bytes_per_s: float = 2.5e6,
) -> Played:
    """Play a scene: a broker is slowed in the middle third of the time, takes fewer bytes, or stands still by turns."""
    brokers = {node: _Broker(0.001, bytes_per_s / (weaker if node == SLOWED else 1.0)) for node in LEADS}
    brokers[SLOWED].still_s = still_ms / 1000
    producer = Producer(POLICIES[policy], brokers, rate)
    producer.play(seconds / 3)
    brokers[SLOWED].request_s += slowed_ms / 1000
    producer.play(seconds / 3)
    brokers[SLOWED].request_s -= slowed_ms / 1000
    producer.play(seconds / 3)
    taken = sorted(took_s for _, took_s in producer.taken_s)
    return Played(len(taken) / seconds, mean(taken) * 1000, taken[len(taken) * 99 // 100] * 1000)


SCENES: dict[str, dict[str, float]] = {
    "no broker slowed": {"rate": 5000.0},
    "broker 1 50 ms slower": {"slowed_ms": 50.0, "rate": 5000.0},
    "broker 1 500 ms slower": {"slowed_ms": 500.0, "rate": 5000.0},
    "broker 1 stands still for 200 ms by turns": {"still_ms": 200.0, "rate": 2000.0},
    "broker 1 takes a third of the bytes": {"weaker": 3.0, "rate": 9000.0},
    "more records than brokers take": {"rate": 20_000.0},
    "the same, broker 1 50 ms slower": {"slowed_ms": 50.0, "rate": 20_000.0},
}


def main() -> None:
    """Play every scene under every policy, and print a table."""
    options = argparse.ArgumentParser(prog="benchmarks.dispatcher.virtual", description=__doc__)
    options.add_argument("--seconds", type=float, default=60.0)
    options.add_argument("--scene", action="append", choices=SCENES, help="default: all")
    given = options.parse_args()
    for name in given.scene or SCENES:
        scene = SCENES[name]
        print(f"{name} ({scene['rate']:,.0f} records/s)")
        for policy in POLICIES:
            seen = play(policy, seconds=given.seconds, **scene)
            print(
                f"  {policy:>9}: {seen.records_per_s:8,.0f} records/s acknowledged, mean {seen.mean_ms:8,.1f} ms, "
                f"p99 {seen.p99_ms:8,.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()
