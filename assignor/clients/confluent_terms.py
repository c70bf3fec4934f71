"""What a member's partitions, offsets, errors and metadata are to users of confluent-kafka, and the other way round."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from kafka.errors import (
    BrokerResponseError,
    CommitFailedError,
    FencedInstanceIdError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
)
from kafka.errors import KafkaError as MemberError
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as Partition

from loadwise.assignor.clients.membership import GroupMetadata
from loadwise.assignor.clients.membership_commits import Offsets
from loadwise.protocol.live_notes import is_note

_METADATA = b"CGMDv2:"
"""How librdkafka writes group metadata down: this, the generation, and texts that end in a zero byte."""


def named(partitions: Iterable[Partition]) -> list[TopicPartition]:
    """A member's partitions, for confluent-kafka."""
    return [TopicPartition(key.topic, key.partition) for key in sorted(partitions)]


def keys(partitions: Iterable[TopicPartition]) -> set[Partition]:
    """confluent-kafka's partitions, for the member."""
    return {Partition(each.topic, each.partition) for each in partitions}


def after(message: Message) -> TopicPartition:
    """The offset to commit when a message was processed."""
    after = message.offset() + 1
    return TopicPartition(message.topic(), message.partition(), after, leader_epoch=message.leader_epoch())


def offsets_of(partitions: Iterable[TopicPartition]) -> dict[Partition, OffsetAndMetadata]:
    """The offsets that partitions name, for the member; partitions without one are left out.

    A logical offset, as OFFSET_END, is none: librdkafka leaves it out of commits, too.
    """
    return {
        Partition(each.topic, each.partition): OffsetAndMetadata(
            each.offset, each.metadata or "", _epoch(each.leader_epoch)
        )
        for each in partitions
        if each.offset >= 0
    }


def listed_partitions(partitions: Any) -> list[TopicPartition]:
    """The same list. Raises `TypeError`, as the stock consumer does, where it is none of partitions."""
    if not isinstance(partitions, list) or not all(isinstance(each, TopicPartition) for each in partitions):
        raise TypeError(f"{partitions!r} is no list of TopicPartition")
    return partitions


def check_subscription(topics: Any, **callbacks: Any) -> None:
    """Raise what the stock consumer's ``subscribe`` raises: `TypeError`, and ``KafkaException`` without a topic."""
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise TypeError(f"topics are {topics!r}; they must be a list of names")
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} expects a callable, and is {callback!r}")
    if not topics:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no topic to subscribe to; unsubscribe() leaves all"))


def without_note(committed: TopicPartition) -> TopicPartition:
    """What is committed as the user's: without metadata where those are a note of ours."""
    try:
        metadata = committed.metadata
    except UnicodeDecodeError:  # librdkafka has read beyond the user's text
        return committed
    if not is_note(metadata):
        return committed
    return TopicPartition(
        committed.topic, committed.partition, committed.offset, leader_epoch=_epoch(committed.leader_epoch)
    )


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def listed(offsets: Offsets) -> list[TopicPartition]:
    """A member's offsets, for confluent-kafka."""
    return [TopicPartition(key.topic, key.partition, offset.offset) for key, offset in sorted(offsets.items())]


def written(member: GroupMetadata, stock: bytes) -> bytes:
    """The member's group metadata as ``rd_kafka_consumer_group_metadata_read`` of librdkafka reads it."""
    if not stock.startswith(_METADATA):
        raise KafkaException(
            KafkaError(
                KafkaError._NOT_IMPLEMENTED,
                f"this librdkafka writes group metadata in a form that is not known here ({stock[:7]!r}, not"
                f" {_METADATA!r}), so a transaction could not be fenced",
            )
        )
    texts = [member.group_id, member.member_id]
    if member.instance_id is not None:
        texts.append(member.instance_id)
    group_id, *others = (text.encode() + b"\0" for text in texts)
    is_dynamic = bytes([member.instance_id is None])
    member_id, *instance_id = others
    return b"".join([_METADATA, struct.pack("=i", member.generation), group_id, member_id, is_dynamic, *instance_id])


def not_owned(dropped: Offsets) -> KafkaError:
    """The error that names what was not committed because it is not owned."""
    names = ", ".join(f"{key.topic} [{key.partition}] @ {offset.offset}" for key, offset in sorted(dropped.items()))
    return KafkaError(
        KafkaError._ASSIGNMENT_LOST,
        f"not committed, because this member does not own them any more: {names}",
    )


def polled_late(max_poll_interval_ms: int) -> Message:
    """What a stock consumer's ``poll`` answers once where it came too late, an error in a message.

    Raises it as ``KafkaException`` before confluent-kafka 2.13, where nobody but librdkafka can make a message.
    """
    error = KafkaError(
        KafkaError._MAX_POLL_EXCEEDED,
        f"Application maximum poll interval ({max_poll_interval_ms}ms) exceeded, so the member has left its group:"
        " adjust max.poll.interval.ms for long-running message processing",
    )
    return _told_by_message(error)


def not_available(topic: str, code: int) -> Message:
    """What a stock consumer's ``poll`` answers once for a subscribed topic that cannot be read.

    Raises it as ``KafkaException`` where `polled_late` does.
    """
    reason = f"Subscribed topic not available: {topic}: {KafkaError(code).str()}"
    return _told_by_message(KafkaError(code, reason), topic=topic)


def _told_by_message(error: KafkaError, **message: Any) -> Message:
    try:
        return Message(error=error, **message)
    except TypeError:
        raise KafkaException(error) from None


def confluent_error(error: Exception) -> KafkaError:
    """What a member's error is to users of confluent-kafka."""
    cause = error.args[0] if isinstance(error, CommitFailedError) and error.args else error
    match cause:
        case FencedInstanceIdError():
            return KafkaError(KafkaError.FENCED_INSTANCE_ID, str(error), fatal=True)
        case BrokerResponseError(errno=int(code)):
            return KafkaError(code, str(error), retriable=bool(cause.retriable))
        case str():
            return KafkaError(KafkaError.UNKNOWN_MEMBER_ID, str(error))
        case IllegalStateError():
            return KafkaError(KafkaError._STATE, str(error))
        case KafkaTimeoutError():
            return KafkaError(KafkaError._TIMED_OUT, str(error), retriable=True)
        case KafkaConnectionError():
            return KafkaError(KafkaError._TRANSPORT, str(error), retriable=True)
        case _:
            return KafkaError(KafkaError._FAIL, str(error) or repr(error))


@contextlib.contextmanager
def as_confluent() -> Iterator[None]:
    """Raise the member's errors as confluent-kafka's."""
    try:
        yield
    except MemberError as error:
        raise KafkaException(confluent_error(error)) from error
