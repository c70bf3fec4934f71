"""Asking a broker by hand for what share groups need (KIP-932); answers are reduced to what can be compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import client_messages
from record_batches import batch
from sessions import Session
from topics import WAIT_S

from loadwise.protocol.error_codes import ErrorCode

_Told = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]
"""By partition: first and last offset, and what is told of them."""
_NOT_YET = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}


class ShareSession(Session):
    """One connection that speaks for members of a share group; they have the ids that they choose."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.address = bootstrap_servers
        self.topic_id = UUID(int=0)
        self._members: dict[str, str] = {}
        self._has_records = False

    def member_id(self, name: str) -> str:
        """A member by a short name."""
        return self._members.setdefault(name, str(uuid4())) if len(name) == 1 else name

    def make(self, partitions: int = 1, **configs: str) -> None:
        """Set configs of the group, which begins at the first record unless it is told otherwise; make the topic.

        Kafka's groups learn of configs after its answer, but before they give members a topic that was made later.
        """
        self.configure({"share.auto.offset.reset": "earliest"} | {f"share.{k}": v for k, v in configs.items()})
        assert self.create_topic(self.topic, partitions) == 0
        self.wait_for_topic()
        row = {"name": self.topic}
        self.topic_id = self.ask("Metadata", 12, topics=[row], allow_auto_topic_creation=False).topics[0].topic_id

    def configure(self, configs: Mapping[str, str]) -> None:
        assert self.alter_groups({self.group: configs}) == {self.group: 0}

    def fill(self, *sizes: int) -> None:
        """Batches of so many records, into partition 0."""
        deadline = time.monotonic() + WAIT_S
        for size in sizes:
            # Kafka tells of a topic some time before its broker leads the partitions.
            while (error := self.produce(batch([b"x"] * size))[0]) in _NOT_YET:
                assert time.monotonic() < deadline
            assert error == 0

    def beat_as(self, member: str, epoch: int, *topics: str, **changes: Any) -> Any:
        """A heartbeat: error, epoch and assignment."""
        fields: dict[str, Any] = {
            "version": 1,
            "group_id": self.group,
            "member_id": self.member_id(member),
            "member_epoch": epoch,
            "rack_id": None,
            "subscribed_topic_names": list(topics) or None,
        }
        reply = self.ask("ShareGroupHeartbeat", **fields | changes)
        assigned = None if reply.assignment is None else [each.partitions for each in reply.assignment.topic_partitions]
        return reply.error_code, reply.member_epoch, assigned, reply.heartbeat_interval_ms

    def join_as(self, member: str, partitions: int = 1) -> Any:
        """Heartbeats until the member has so many partitions, which takes Kafka some time; its epoch and these."""
        _, epoch, assigned, _ = self.beat_as(member, 0, self.topic)
        deadline = time.monotonic() + WAIT_S
        while sum(map(len, assigned or ())) < partitions:
            assert time.monotonic() < deadline
            error, epoch, newer, _ = self.beat_as(member, epoch)
            assert error == 0
            assigned = assigned if newer is None else newer
        return epoch, assigned

    def acquire_as(
        self, member: str, epoch: int, told: _Told | None = None, partitions: Sequence[int] = (0,), **changes: Any
    ) -> Any:
        """A ShareFetch: its error, and a row for each partition."""
        topic = client_messages.ShareFetchRequest.FetchTopic
        row = topic.FetchPartition
        named = dict.fromkeys([*partitions, *(told or {})])
        rows = [{"partition_index": each, "acknowledgement_batches": _batches(row, told, each)} for each in named]
        fields: dict[str, Any] = {
            "version": 2,
            "group_id": self.group,
            "member_id": self.member_id(member),
            "share_session_epoch": epoch,
            # Kafka reads a partition's state when it is first fetched, which takes a busy machine longer.
            "max_wait_ms": 500 if self._has_records else 60_000,
            "min_bytes": 1,
            "max_bytes": 10_000_000,
            "max_records": 500,
            "batch_size": 500,
            "share_acquire_mode": 0,
            "is_renew_ack": False,
            "topics": [{"topic_id": self.topic_id, "partitions": rows}] if rows else [],
            "forgotten_topics_data": [],
        }
        reply = self.ask("ShareFetch", **fields | changes)
        answered = [
            (
                each.partition_index,
                each.error_code,
                each.acknowledge_error_code,
                [(got.first_offset, got.last_offset, got.delivery_count) for got in each.acquired_records],
                len(each.records or b""),
            )
            for topic in reply.responses
            for each in topic.partitions
        ]
        self._has_records |= any(acquired for *_, acquired, _ in answered)
        # A row that tells nothing may be left out: on Kafka it is, until it has read the state of a partition.
        return reply.error_code, sorted(row for row in answered if any(row[1:]))

    def tell_as(self, member: str, epoch: int, told: _Told, **changes: Any) -> Any:
        """A ShareAcknowledge: its error, and that of each partition."""
        topic = client_messages.ShareAcknowledgeRequest.AcknowledgeTopic
        row = topic.AcknowledgePartition
        rows = [{"partition_index": each, "acknowledgement_batches": _batches(row, told, each)} for each in told]
        fields: dict[str, Any] = {
            "version": 2,
            "group_id": self.group,
            "member_id": self.member_id(member),
            "share_session_epoch": epoch,
            "is_renew_ack": False,
            "topics": [{"topic_id": self.topic_id, "partitions": rows}],
        }
        reply = self.ask("ShareAcknowledge", **fields | changes)
        rows = [(each.partition_index, each.error_code) for topic in reply.responses for each in topic.partitions]
        return reply.error_code, sorted(rows)

    def describe_as_share_group(self) -> Any:
        (group,) = self.ask("ShareGroupDescribe", 1, group_ids=[self.group], include_authorized_operations=False).groups
        members = [
            (
                member.client_id,
                member.rack_id,
                len(member.subscribed_topic_names),
                group.assignment_epoch - member.member_epoch,
                [each.partitions for each in member.assignment.topic_partitions],
            )
            for member in group.members
        ]
        # How high epochs are depends on how often a member asks while Kafka makes partitions known in the background.
        ahead = group.group_epoch - group.assignment_epoch
        return group.error_code, group.group_state, group.assignor_name, ahead, sorted(members, key=str)

    def offsets(self, group: str | None = None, *partitions: int) -> Any:
        """DescribeShareGroupOffsets: of the group its error, of each partition start, lag and error."""
        topics = [{"topic_name": self.topic, "partitions": list(partitions)}] if partitions else None
        reply = self.ask(
            "DescribeShareGroupOffsets",
            1,
            groups=[{"group_id": self.group if group is None else group, "topics": topics}],
        )
        (answer,) = reply.groups
        rows = [
            (each.partition_index, each.start_offset, each.lag, each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        ]
        return answer.error_code, sorted(rows)

    def set_offsets(self, starts: Mapping[int, int], topic_name: str | None = None, group: str | None = None) -> Any:
        rows = [{"partition_index": number, "start_offset": offset} for number, offset in starts.items()]
        reply = self.ask(
            "AlterShareGroupOffsets",
            0,
            group_id=self.group if group is None else group,
            topics=[{"topic_name": self.topic if topic_name is None else topic_name, "partitions": rows}],
        )
        rows = [(each.partition_index, each.error_code) for topic in reply.responses for each in topic.partitions]
        return reply.error_code, sorted(rows)

    def forget_offsets(self, *names: str, group: str | None = None) -> Any:
        reply = self.ask(
            "DeleteShareGroupOffsets",
            0,
            group_id=self.group if group is None else group,
            topics=[{"topic_name": each} for each in names],
        )
        return reply.error_code, [each.error_code for each in reply.responses]


def _batches(row: Any, told: _Told | None, partition: int) -> list[Any]:
    return [
        row.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in (told or {}).get(partition, ())
    ]
