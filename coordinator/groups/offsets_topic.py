"""``__consumer_offsets`` as a topic that clients can read, in Kafka's format.

It contains committed offsets and classic groups. Monitors such as Burrow and KMinion read it, and so do Kafka's own
formatters. The groups' state is in their journal. The topic's logs are written from the first read on, starting with
everything in the journal, so they cost nothing until then. If most records of a log are outdated, the log is rewritten
behind its end, and the part before is deleted. For a reader, Kafka's compaction has the same effect.

Formats: ``OffsetCommitKey`` 1, ``OffsetCommitValue`` 1, 3 and 4, ``GroupMetadataKey`` 2 and ``GroupMetadataValue`` 3 of
Kafka's ``group-coordinator``. Of KIP-848 groups only the offsets are written.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from loadwise.coordinator.cluster.brokers import (
    CONSUMER_OFFSETS,
    COORDINATOR_PARTITIONS,
    Brokers,
    coordinator_partition,
)
from loadwise.coordinator.cluster.checksum import crc32c
from loadwise.coordinator.cluster.log import Appended, PartitionLog
from loadwise.coordinator.cluster.topics import Topic, Topics
from loadwise.coordinator.groups.consumer_records import ConsumerRecord, Tombstone
from loadwise.coordinator.groups.records import (
    GroupRecord,
    GroupTombstone,
    KindRecord,
    OffsetRecord,
    OffsetTombstone,
    Record,
)
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.encoding import varint
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.one_record import one_record

log = logging.getLogger("loadwise.coordinator")

_CONFIGS = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
_LEAST_RECORDS_TO_COMPACT = 1000
"""Smaller logs are not compacted; larger ones are when three of four records are outdated."""

_MAX_TEXT_BYTES = 0x7FFF

KeyAndValue = tuple[bytes, bytes | None]


class _TooLongError(Exception):
    """A text is too long for a record."""


class OffsetsTopic:
    """The topic, created for the first group, and its contents after the first read."""

    def __init__(
        self,
        topics: Topics,
        brokers: Brokers,
        groups: Groups,
        *,
        grown: Callable[[PartitionLog, Appended], None],
        delete_records: Callable[[PartitionLog, int], None],
        now_ms: Callable[[], int],
        replication_factor: int = 3,
    ) -> None:
        self._topics, self._brokers, self._groups = topics, brokers, groups
        self._grown, self._delete_records, self._now_ms = grown, delete_records, now_ms
        self._replication_factor = replication_factor
        self._filled: Topic | None = None
        """The topic with contents; None before the first read."""
        self._compact_at: dict[int, int] = {}
        """The size of each partition's log, in records, at which it is checked for compaction again."""

    def make(self) -> None:
        """Create the topic if it does not exist."""
        if self._topics.get(CONSUMER_OFFSETS) is None:
            leaders = self._brokers.coordinators(CONSUMER_OFFSETS)
            ids = [node.id for node in self._brokers.nodes]
            followers = self._replication_factor - 1
            replicas = [(leader, *[each for each in ids if each != leader][:followers]) for leader in leaders]
            self._topics.create(CONSUMER_OFFSETS, COORDINATOR_PARTITIONS, _CONFIGS, replicas=replicas)

    def begin(self) -> None:
        """Write the groups' state, and from now on its changes, because a client reads it."""
        topic = self._topics.get(CONSUMER_OFFSETS)
        if topic is not None and topic is not self._filled:
            self._filled = topic
            self._groups.before_append = self._follow
            self._compact_at.clear()
            # Records of an earlier run came back with the other topics, and may be outdated.
            outdated = [(each.log, each.log.end_offset) for each in topic.partitions]
            for record in self._groups.journal:
                self._append(self._number(topic, record), self._written(record))
            for kept, end_offset in outdated:
                self._delete_records(kept, end_offset)

    def lead(self, partition: int, node_id: int) -> None:
        """Make the broker that coordinates a partition's groups the partition's leader."""
        found = self._topics.partition(CONSUMER_OFFSETS, partition)
        if found is None:
            return
        if node_id not in found.replicas:
            self._topics.reassign(found, (node_id, *found.replicas[1:]))
        if found.leader != node_id:
            self._topics.move_leader(CONSUMER_OFFSETS, partition, node_id)

    def _follow(self, record: Record) -> None:
        """Write a record that the groups are about to store."""
        written = self._written(record)
        topic = self._topics.get(CONSUMER_OFFSETS)
        if not written or topic is None:
            return
        number = self._number(topic, record)
        self._append(number, written)
        kept = topic.partitions[number].log
        if kept.end_offset - kept.start_offset >= self._compact_at.get(number, _LEAST_RECORDS_TO_COMPACT):
            present = [
                pair
                for each in self._groups.journal
                if self._number(topic, each) == number
                for pair in self._written(each)
            ]
            begins_at = kept.end_offset
            # The new record is not in the journal yet; it comes last, as it did before.
            self._append(number, [*present, *written])
            self._delete_records(kept, begins_at)
            self._compact_at[number] = max(4 * len(present), _LEAST_RECORDS_TO_COMPACT)

    def _written(self, record: Record) -> Sequence[KeyAndValue]:
        """Return the records that Kafka would write; none if a text is too long.

        That can happen to text that was not UTF-8, because each U+FFFD in it takes three bytes.
        """
        try:
            return list(self._records(record))
        except _TooLongError as problem:
            log.warning("%s skips a record: %s", CONSUMER_OFFSETS, problem)
            return ()

    def _records(self, record: Record) -> Iterator[KeyAndValue]:
        match record:
            case OffsetRecord():
                topic = self._topics.get(record.topic)
                value = _offset_value(record, None if topic is None else topic.id)
                yield _offset_key(record.group_id, record.topic, record.partition), value
            case OffsetTombstone():
                yield _offset_key(record.group_id, record.topic, record.partition), None
            case GroupRecord():
                yield _group_key(record.group_id), _group_value(record, self._now_ms())
            case Tombstone(key=("group",)):
                yield _group_key(record.group_id), None
            case GroupTombstone():
                of_group = list(self._groups.journal.of_group(record.group_id))
                for each in of_group:
                    if isinstance(each, OffsetRecord):
                        yield _offset_key(each.group_id, each.topic, each.partition), None
                if not any(isinstance(each, ConsumerRecord | KindRecord) for each in of_group):
                    yield _group_key(record.group_id), None
            case _:
                pass

    @staticmethod
    def _number(topic: Topic, record: Record) -> int:
        return coordinator_partition(record.group_id) % len(topic.partitions)

    def _append(self, number: int, records: Iterable[KeyAndValue]) -> None:
        found = self._topics.partition(CONSUMER_OFFSETS, number)
        if found is None:
            return
        for key, value in records:
            batch = one_record(key, value, timestamp_ms=self._now_ms(), crc32c=crc32c)
            appended = found.log.append(batch, now_ms=self._now_ms())
            if appended.error is not ErrorCode.NONE:  # for example if message.max.bytes is too small
                log.warning("%s cannot store a record: %s", CONSUMER_OFFSETS, appended.message)
                continue
            self._grown(found.log, appended)


def _text(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > _MAX_TEXT_BYTES:
        raise _TooLongError(f"it contains a text of {len(data):,} bytes, but the limit is {_MAX_TEXT_BYTES:,}")
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return struct.pack(">h", 1) + _text(group_id) + _text(topic) + struct.pack(">i", partition)


def _offset_value(record: OffsetRecord, topic_id: UUID | None) -> bytes:
    """Return the value. Version 1 has an expiry time, version 4 the topic's id as a tagged field."""
    if record.expires_ms is not None:
        times = struct.pack(">qq", record.committed_ms, record.expires_ms)
        return struct.pack(">hq", 1, record.offset) + _text(record.metadata) + times
    committed = struct.pack(">q", record.committed_ms)
    if topic_id is None:
        return struct.pack(">hqi", 3, record.offset, record.leader_epoch) + _text(record.metadata) + committed
    metadata = record.metadata.encode("utf-8", "surrogatepass")
    texts = varint(len(metadata) + 1) + metadata
    head = struct.pack(">hqi", 4, record.offset, record.leader_epoch)
    return head + texts + committed + bytes([1, 0, 16]) + topic_id.bytes


def _group_key(group_id: str) -> bytes:
    return struct.pack(">h", 2) + _text(group_id)


def _group_value(record: GroupRecord, now_ms: int) -> bytes:
    """Return the value of a group.

    A group with members does not store since when it is stable. That is about now, when its record is written.
    """
    members = b"".join(
        b"".join(
            (
                _text(each.member_id),
                _text(each.instance_id),
                _text(each.client_id),
                _text(each.client_host),
                struct.pack(">ii", each.rebalance_timeout_ms, each.session_timeout_ms),
                _bytes(each.subscription),
                _bytes(each.assignment),
            )
        )
        for each in record.members
    )
    since_ms = now_ms if record.since_ms is None else record.since_ms
    head = struct.pack(">h", 3) + _text(record.protocol_type or "") + struct.pack(">i", record.generation)
    names = _text(record.protocol_name) + _text(record.leader)
    return head + names + struct.pack(">qi", since_ms, len(record.members)) + members
