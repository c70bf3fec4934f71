"""Asking a broker by hand about transactions; answers are reduced to what two brokers can be compared by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from client_messages import client_request
from kafka.protocol import producer
from kafka.record import MemoryRecords
from record_batches import batch
from sessions import Session
from topics import WAIT_S, until

from loadwise.protocol.error_codes import ErrorCode

NOW_MS = int(time.time() * 1000)
LATER = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""What a client tries again: Kafka writes its markers after the answer, and loads its coordinators when first asked."""


class Transactor(Session):
    """A session with a topic of two partitions and a transactional id. A producer is an id and an epoch."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.transactional_id = f"transactional-{uuid4()}"
        self.producer_ids: list[int] = []
        assert self.create_topic(partitions=2) == 0
        self.wait_for_topic()
        for kind, key in ((1, self.transactional_id), (0, self.group)):
            request = client_request("FindCoordinator", 4, key_type=kind, coordinator_keys=[key])
            self.again(lambda request=request: self._coordinator(request))

    def _coordinator(self, request: Any) -> tuple[int]:
        return (self.exchange(request).coordinators[0].error_code,)

    def again(self, act: Callable[[], Any], also: set[ErrorCode] = frozenset()) -> Any:  # type: ignore[assignment]
        """Repeat a request whose answer begins with an error until that is none that goes by itself."""
        deadline = time.monotonic() + WAIT_S
        while (answer := act())[0] in LATER | also:
            assert time.monotonic() < deadline, ErrorCode(answer[0]).name
        return answer

    def init(
        self,
        told: tuple[int, int] = (-1, -1),
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        transactional_id: str | None = None,
    ) -> tuple[int, tuple[int, int]]:
        """The error, and the producer."""
        request = client_request(
            "InitProducerId",
            version,
            transactional_id=self.transactional_id if transactional_id is None else transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=told[0],
            producer_epoch=told[1],
        )
        answer = self.again(lambda: _fields(self.exchange(request)))
        return answer[0], answer[1:]

    def begin(self) -> tuple[int, int]:
        """A producer that may begin a transaction."""
        error, who = self.init()
        assert error == 0
        return who

    def shown(self, answer: tuple[int, tuple[int, int]]) -> tuple[Any, ...]:
        """An answer with the producer id as a number in the order of their coming."""
        error, (producer_id, epoch) = answer
        return error, self.number(producer_id), epoch

    def number(self, producer_id: int) -> int:
        if producer_id < 0:
            return producer_id
        if producer_id not in self.producer_ids:
            self.producer_ids.append(producer_id)
        return self.producer_ids.index(producer_id)

    def add(self, who: tuple[int, int], *numbers: int, version: int = 3, topic: str | None = None) -> list[int]:
        rows = [producer.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction.AddPartitionsToTxnTopic]
        request = client_request(
            "AddPartitionsToTxn",
            version,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=who[0],
            v3_and_below_producer_epoch=who[1],
            v3_and_below_topics=[rows[0](name=topic or self.topic, partitions=list(numbers))],
        )

        def once() -> list[int]:
            (found,) = self.exchange(request).results_by_topic_v3_and_below
            # Kafka answers in the order of a hash map, in which the topic's name counts.
            rows = sorted(found.results_by_partition, key=lambda each: each.partition_index)
            return [each.partition_error_code for each in rows]

        return self.again(once)

    def add_group(self, who: tuple[int, int], version: int = 4) -> int:
        request = client_request(
            "AddOffsetsToTxn", version, transactional_id=self.transactional_id, producer_id=who[0],
            producer_epoch=who[1], group_id=self.group,
        )  # fmt: skip
        return self.again(lambda: (self.exchange(request).error_code,))[0]

    def write(
        self, who: tuple[int, int], sequence: int = 0, *, partition: int = 0, version: int = 12, records: int = 1,
        transactional: bool = True, transactional_id: str | None = "",
    ) -> tuple[int, int]:  # fmt: skip
        data = batch(
            [b"x"] * records, timestamp=NOW_MS, producer=(*who, sequence), transactional=transactional
        )  # fmt: skip
        rows = [{"name": self.topic, "partition_data": [{"index": partition, "records": data}]}]
        request = client_request(
            "Produce", version, transactional_id=self.transactional_id if transactional_id == "" else transactional_id,
            acks=-1, timeout_ms=60_000, topic_data=rows,
        )  # fmt: skip

        def once() -> tuple[int, int]:
            reply = self.exchange(request).responses[0].partition_responses[0]
            return reply.error_code, reply.base_offset

        return self.again(once, also={ErrorCode.NOT_ENOUGH_REPLICAS})

    def end(self, who: tuple[int, int], committed: bool, *, version: int = 5) -> tuple[int, tuple[int, int]]:
        request = client_request(
            "EndTxn", version, transactional_id=self.transactional_id, producer_id=who[0], producer_epoch=who[1],
            committed=committed,
        )  # fmt: skip
        answer = self.again(lambda: _fields(self.exchange(request)))
        self.settle()
        return answer[0], answer[1:] if version >= 5 else (-1, -1)

    def settle(self) -> None:
        """Wait until all markers are written."""
        until(lambda: not self.described()[1].startswith("Prepare"))

    def commit_offset(
        self, who: tuple[int, int], offset: int, *, version: int = 5, member: str = "", generation: int = -1,
        transactional_id: str | None = None,
    ) -> int:  # fmt: skip
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "m"}
        request = client_request(
            "TxnOffsetCommit", version, transactional_id=transactional_id or self.transactional_id,
            group_id=self.group, producer_id=who[0], producer_epoch=who[1], generation_id=generation,
            member_id=self.member(member), topics=[{"name": self.topic, "partitions": [partition]}],
        )  # fmt: skip

        def once() -> tuple[int]:
            return (self.exchange(request).topics[0].partitions[0].error_code,)

        return self.again(once, also={ErrorCode.NOT_ENOUGH_REPLICAS})[0]

    def committed(self, *, stable: bool, version: int = 9) -> tuple[int, int, str]:
        topics = [{"name": self.topic, "partition_indexes": [0]}]
        request = client_request(
            "OffsetFetch", version, require_stable=stable, groups=[{"group_id": self.group, "topics": topics}]
        )
        (found,) = self.exchange(request).groups[0].topics[0].partitions
        return found.error_code, found.committed_offset, found.metadata

    def offsets(self, partition: int, isolation: int, timestamp: int = -1) -> tuple[int, int]:
        found = self.listed_offset(timestamp, partition=partition, isolation=isolation)
        return found.error_code, found.offset

    def read(self, offset: int = 0, *, committed: bool, partition: int = 0, most: int = 100_000) -> tuple[Any, ...]:
        """High watermark, last stable offset, aborted transactions that touch what came, and the batches."""
        row = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": most}
        request = client_request(
            "Fetch", 12, cluster_id=None, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="",
            isolation_level=int(committed), topics=[{"topic": self.topic, "partitions": [row]}],
        )  # fmt: skip
        (found,) = self.exchange(request).responses[0].partitions
        batches = [
            (
                records.base_offset, len(list(records)), records.is_transactional, records.is_control_batch,
                self.number(records.producer_id), records.producer_epoch,
                [(record.key, record.value) for record in records] if records.is_control_batch else None,
            )
            for records in MemoryRecords(bytes(found.records or b""))
        ]  # fmt: skip
        aborted = None
        if found.aborted_transactions is not None:
            aborted = sorted((self.number(each.producer_id), each.first_offset) for each in found.aborted_transactions)
        return found.error_code, found.high_watermark, found.last_stable_offset, aborted, batches

    def described(self, transactional_id: str | None = None) -> tuple[Any, ...]:
        asked = self.transactional_id if transactional_id is None else transactional_id
        request = client_request("DescribeTransactions", 0, transactional_ids=[asked])

        def once() -> tuple[int, Any]:
            (found,) = self.exchange(request).transaction_states
            return found.error_code, found

        _, found = self.again(once)
        topics = [
            ("ours", sorted(each.partitions)) if each.topic == self.topic else (each.topic, len(each.partitions))
            for each in found.topics
        ]
        timeout_ms = found.transaction_timeout_ms
        return found.error_code, found.transaction_state, timeout_ms, found.producer_epoch, sorted(topics)

    def listed(self, version: int = 1, **filters: Any) -> tuple[Any, ...]:
        fields: dict[str, Any] = {"state_filters": [], "producer_id_filters": []} | filters
        answer = self.ask("ListTransactions", version, **fields)
        ours = [
            each.transaction_state
            for each in answer.transaction_states
            if each.transactional_id == self.transactional_id
        ]
        return answer.error_code, sorted(answer.unknown_state_filters), ours

    def producers(self, partition: int = 0) -> tuple[Any, ...]:
        row = {"name": self.topic, "partition_indexes": [partition]}
        (found,) = self.ask("DescribeProducers", 0, topics=[row]).topics[0].partitions
        rows = [
            (self.number(each.producer_id), each.producer_epoch, each.last_sequence, each.coordinator_epoch,
             each.current_txn_start_offset)
            for each in found.active_producers
        ]  # fmt: skip
        return found.error_code, sorted(rows)

    def mark(
        self, who: tuple[int, int], *, committed: bool = False, coordinator_epoch: int = -1, partition: int = 0,
        version: int = 1, transactions: int = 0,
    ) -> int:  # fmt: skip
        topic = {"name": self.topic, "partition_indexes": [partition]}
        marker = {
            "producer_id": who[0], "producer_epoch": who[1], "transaction_result": committed, "topics": [topic],
            "coordinator_epoch": coordinator_epoch, "transaction_version": transactions,
        }  # fmt: skip
        (found,) = self.ask("WriteTxnMarkers", version, markers=[marker]).markers
        return int(found.topics[0].partitions[0].error_code)


def _fields(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, getattr(answer, "producer_id", -1), getattr(answer, "producer_epoch", -1)
