"""``kill -9`` at random points under load: what was acknowledged is there afterwards, and nothing half-done is."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from client_messages import client_request
from cluster_walk import new_router
from confluent_kafka import Consumer, TopicPartition
from kafka.record import MemoryRecords
from numbered_writers import OPTIONS, WRITERS, NumberedWriter
from programs_with_data import Program
from record_batches import batch
from seeds import SEED
from sessions import Session
from topics import WAIT_S

from loadwise.coordinator.groups.partitions import Partition
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.storage.directory import Directory
from loadwise.coordinator.storage.files import FILE_NAME

NOW_MS = 1_700_000_000_000


@dataclass
class Acknowledged:
    """What clients were told."""

    records: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    """Topic, partition and offset to the value."""
    committed_offset: int = 0
    topics: set[str] = field(default_factory=set)
    committed: set[bytes] = field(default_factory=set)
    """The values of transactions that were committed."""
    aborted: set[bytes] = field(default_factory=set)
    offset_in_transactions: int = 0
    """The last one that a transaction committed."""
    offset_under_way: int = 0
    """The one of the last transaction that was to be committed, whether or not that was answered."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The last number of each of `WRITERS`."""
    producer_ids: list[int] = field(default_factory=list)
    count: int = 0

    @property
    def least(self) -> int:
        """How often the kind of write was acknowledged that was acknowledged least."""
        kinds = map(len, (self.records, self.committed, self.aborted))
        return min(*kinds, *(self.numbers.get(writer.name, 0) for writer in WRITERS))


class Load:
    """Clients that write as fast as they are answered, until their broker is gone.

    It is killed after ``kill_after`` acknowledged writes, of each kind at least ``least`` in all.
    """

    def __init__(
        self, address: str, acknowledged: Acknowledged, number: int, kill_after: int, kill: Any, *, least: int = 0
    ) -> None:
        self.address, self.acknowledged, self.number = address, acknowledged, number
        self._kill_at, self._kill, self._least = acknowledged.count + kill_after, kill, least
        self._lock = threading.Lock()
        self.failures: list[BaseException] = []

    def run(self) -> None:
        writers = [self.produce, self.produce, self.commit, self.transact, self.create]
        writers += [partial(self.count, writer) for writer in WRITERS]
        threads = [threading.Thread(target=self._until_gone, args=(writer,)) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _until_gone(self, write: Callable[[Session, int], None]) -> None:
        index = 0
        try:
            with contextlib.closing(Session(self.address)) as session:
                while True:
                    write(session, index)
                    index += 1
                    with self._lock:
                        self.acknowledged.count += 1
                        if self.acknowledged.count >= self._kill_at and self.acknowledged.least >= self._least:
                            self._kill()
        except (OSError, EOFError):
            pass
        except AssertionError as problem:
            if "hung up" not in str(problem):
                self.failures.append(problem)

    def _produce(self, session: Session, topic: str, records: bytes, transactional_id: str | None = None) -> int:
        data = {"name": topic, "partition_data": [{"index": 0, "records": records}]}
        answer = session.ask(
            "Produce", 12, transactional_id=transactional_id, acks=-1, timeout_ms=60_000, topic_data=[data]
        )
        answer = answer.responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        return int(answer.base_offset)

    def produce(self, session: Session, index: int) -> None:
        value = f"{self.number} {threading.get_ident()} {index}".encode()
        offset = self._produce(session, "t", batch([value], timestamp=NOW_MS))
        self.acknowledged.records["t", 0, offset] = value

    def commit(self, session: Session, _: int) -> None:
        offset = self.acknowledged.committed_offset + 1
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        request = client_request(
            "OffsetCommit", 9, group_id="g", member_id="", topics=[{"name": "t", "partitions": [row]}]
        )
        assert session.exchange(request).topics[0].partitions[0].error_code == 0
        self.acknowledged.committed_offset = offset

    def transact(self, session: Session, index: int) -> None:
        def init() -> Any:
            return session.ask("InitProducerId", 5, transactional_id="x", transaction_timeout_ms=60_000)

        begun = init()
        if begun.error_code == 51:  # CONCURRENT_TRANSACTIONS: what was open at the kill was aborted just now
            begun = init()
        assert begun.error_code == 0
        who = begun.producer_id, begun.producer_epoch
        if not self.acknowledged.producer_ids or self.acknowledged.producer_ids[-1] != who[0]:
            assert who[0] not in self.acknowledged.producer_ids
            self.acknowledged.producer_ids.append(who[0])
        values = [f"{self.number} {index} {part}".encode() for part in range(2)]
        for sequence, value in enumerate(values):
            records = batch([value], timestamp=NOW_MS, producer=(*who, sequence), transactional=True)
            self._produce(session, "in-transactions", records, "x")
        is_committed = index % 3 != 0
        offset = self.acknowledged.offset_under_way + 1
        self._commit_in_transaction(session, who, offset)
        if is_committed:
            self.acknowledged.offset_under_way = offset
        answer = session.ask(
            "EndTxn", 5, transactional_id="x", producer_id=who[0], producer_epoch=who[1], committed=is_committed
        )
        assert answer.error_code == 0
        (self.acknowledged.committed if is_committed else self.acknowledged.aborted).update(values)
        if is_committed:
            self.acknowledged.offset_in_transactions = offset

    def _commit_in_transaction(self, session: Session, who: tuple[int, int], offset: int) -> None:
        row = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
        request = client_request(
            "TxnOffsetCommit", 5, transactional_id="x", group_id="in-transactions", producer_id=who[0],
            producer_epoch=who[1], member_id="", topics=[{"name": "t", "partitions": [row]}],
        )  # fmt: skip
        assert session.exchange(request).topics[0].partitions[0].error_code == 0

    def count(self, writer: NumberedWriter, session: Session, _: int) -> None:
        number = self.acknowledged.numbers.get(writer.name, 0) + 1
        writer.write(session, number)
        self.acknowledged.numbers[writer.name] = number

    def create(self, session: Session, index: int) -> None:
        name = f"topic-{self.number}-{index % 20}"
        if index < 20:
            assert session.create_topic(name) == 0
            self.acknowledged.topics.add(name)
        else:
            session.ask("Metadata", 12, topics=None)


def values_of(cluster: Cluster, topic: str, *, committed_only: bool = False) -> dict[int, bytes]:
    """Offset to value of all records that a reader sees."""
    log = cluster.topics.log(topic, 0)
    assert log is not None
    end = log.stable_offset if committed_only else log.end_offset
    data = log.read(log.start_offset, 2**31, at_least_one=True, end_offset=end)
    aborted = {(each.producer_id, each.first_offset, each.last_offset) for each in log.aborted_in(0, len(data))}
    values = {}
    for each in _batches(data):
        for record in each:
            is_aborted = any(each.producer_id == who and first <= record.offset <= last for who, first, last in aborted)
            if not each.is_control_batch and not (committed_only and is_aborted):
                values[record.offset] = bytes(record.value)
    return values


def _batches(data: bytes) -> list[Any]:
    records = MemoryRecords(data)
    found = []
    while (each := records.next_batch()) is not None:
        found.append(each)
    return found


def check(path: Path, acknowledged: Acknowledged) -> None:
    """Compare what is in the directory with what was acknowledged."""
    directory = Directory(path)
    cluster = new_router().cluster
    state = directory.read()
    cluster.load(state, directory, NOW_MS)
    directory.close()
    stored = values_of(cluster, "t")
    for (_, _, offset), value in acknowledged.records.items():
        assert stored.get(offset) == value, f"offset {offset} was acknowledged"
    assert sorted(stored) == list(range(len(stored)))
    offsets = cluster.groups.offsets.of("g")
    if acknowledged.committed_offset:
        committed = offsets[Partition("t", 0)].offset
        # One more may have been written, and not answered any more.
        assert acknowledged.committed_offset <= committed <= acknowledged.committed_offset + 1
        acknowledged.committed_offset = committed
    in_transactions = cluster.groups.offsets.of("in-transactions").get(Partition("t", 0))
    kept = 0 if in_transactions is None else in_transactions.offset
    assert kept in (acknowledged.offset_in_transactions, acknowledged.offset_under_way)
    acknowledged.offset_in_transactions = acknowledged.offset_under_way = kept
    for writer in WRITERS:
        number, kept = acknowledged.numbers.get(writer.name, 0), writer.found(state)
        assert number <= kept <= number + 1, writer.name
        acknowledged.numbers[writer.name] = kept
    assert acknowledged.topics <= {topic.name for topic in cluster.topics}
    seen = set(values_of(cluster, "in-transactions", committed_only=True).values())
    assert acknowledged.committed <= seen
    assert not acknowledged.aborted & seen
    for value in seen:  # all of a transaction, or nothing
        assert {value[:-1] + b"0", value[:-1] + b"1"} <= seen


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.long)])
def test_what_was_acknowledged_survives(tmp_path: Path, kills: int) -> None:
    random = Random(SEED)
    acknowledged = Acknowledged()
    for number in range(kills):
        program = Program(tmp_path, "--topic", "t:1", "--topic", "in-transactions:1", *OPTIONS)
        try:
            kill_after = random.choice([1, 5, 50, 150, 300, 600])
            # The last kill waits until there is enough to check: threads do not get equal turns.
            least = 4 if number == kills - 1 else 0
            Load(program.address, acknowledged, number, kill_after, program.kill, least=least).run()
        finally:
            program.kill()
        check(tmp_path, acknowledged)
    assert acknowledged.least >= 4
    print(f"{kills} kills, {acknowledged.count:,} acknowledged, of these {acknowledged.numbers}")
    program = Program(tmp_path)
    try:
        consumer = Consumer({"bootstrap.servers": program.address, "group.id": "g"})
        (committed,) = consumer.committed([TopicPartition("t", 0)], WAIT_S)
        assert committed.offset == acknowledged.committed_offset
        consumer.close()
    finally:
        program.kill()


def test_what_cannot_be_written_is_not_acknowledged_and_ends_the_program(tmp_path: Path) -> None:
    """As on a full disk: here the system lets no file grow any more."""
    program = Program(tmp_path, "--topic", "t:1", "--topic", "in-transactions:1", *OPTIONS)
    resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (400_000, 400_000))
    acknowledged = Acknowledged()
    try:
        Load(program.address, acknowledged, 0, 10**9, program.kill).run()
        _, errors = program.process.communicate(timeout=WAIT_S)
    finally:
        program.kill()
    assert program.process.returncode == 1
    assert f"loadwise coordinator: the data directory {tmp_path} cannot be written: " in errors
    assert "Traceback" not in errors
    assert acknowledged.records
    check(tmp_path, acknowledged)


def test_what_cannot_be_opened_is_told_in_a_sentence(tmp_path: Path) -> None:
    program = Program(tmp_path)
    try:
        command = [sys.executable, "-m", "loadwise", "coordinator", "--data-dir", str(tmp_path)]
        other = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    finally:
        program.kill()
    assert (other.returncode, other.stdout) == (1, "")
    sentence = f"loadwise coordinator: another process uses the data directory {tmp_path}: stop it first"
    assert other.stderr.strip() == sentence


def test_lost_writes_are_refused_until_they_are_accepted(tmp_path: Path) -> None:
    program = Program(tmp_path, "--topic", "t:1")
    program.kill()
    (tmp_path / f"{FILE_NAME}-wal").unlink()
    command = [sys.executable, "-m", "loadwise", "coordinator", "--data-dir", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"loadwise coordinator: the data directory {tmp_path} has lost writes" in refused.stderr
    assert "--accept-data-loss" in refused.stderr
    for options in (["--accept-data-loss"], []):
        Program(tmp_path, *options).kill()
