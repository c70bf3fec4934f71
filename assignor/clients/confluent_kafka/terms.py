"""Convert partitions, offsets, errors and metadata between a member and confluent-kafka."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from loadwise.assignor.clients.membership import GroupMetadata, OffsetAndMetadata, Offsets, Partition, member_errors
from loadwise.protocol.live_notes import is_note

_METADATA = b"CGMDv2:"
"""Prefix of librdkafka's group metadata; the generation and zero-terminated strings follow."""


def named(partitions: Iterable[Partition]) -> list[TopicPartition]:
    """Convert a member's partitions to confluent-kafka's."""
    return [TopicPartition(key.topic, key.partition) for key in sorted(partitions)]


def keys(partitions: Iterable[TopicPartition]) -> set[Partition]:
    """Convert confluent-kafka's partitions to a member's."""
    return {Partition(each.topic, each.partition) for each in partitions}


def after(message: Message) -> TopicPartition:
    """Return the offset to commit once a message is processed."""
    after = message.offset() + 1
    return TopicPartition(message.topic(), message.partition(), after, leader_epoch=message.leader_epoch())


def offsets_of(partitions: Iterable[TopicPartition]) -> dict[Partition, OffsetAndMetadata]:
    """Convert the offsets of partitions to a member's; partitions without one are left out.

    A logical offset such as OFFSET_END is left out, too, as in librdkafka's commits.
    """
    return {
        Partition(each.topic, each.partition): OffsetAndMetadata(
            each.offset, each.metadata or "", _epoch(each.leader_epoch)
        )
        for each in partitions
        if each.offset >= 0
    }


def listed_partitions(partitions: Any) -> list[TopicPartition]:
    """Return the list. Raises `TypeError` like the stock consumer unless it holds partitions."""
    if not isinstance(partitions, list) or not all(isinstance(each, TopicPartition) for each in partitions):
        raise TypeError(f"{partitions!r} is not a list of TopicPartition")
    return partitions


def check_subscription(topics: Any, **callbacks: Any) -> None:
    """Raise what the stock consumer's ``subscribe`` raises: `TypeError`, or ``KafkaException`` without a topic."""
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise TypeError(f"topics are {topics!r}; they must be a list of names")
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} is {callback!r}; it must be callable")
    if not topics:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no topic to subscribe to; use unsubscribe() instead"))


def without_note(committed: TopicPartition) -> TopicPartition:
    """Return a committed offset with the user's metadata only, without our notes."""
    try:
        metadata = committed.metadata
    except UnicodeDecodeError:  # librdkafka read past the end of the user's text
        return committed
    if not is_note(metadata):
        return committed
    return TopicPartition(
        committed.topic, committed.partition, committed.offset, leader_epoch=_epoch(committed.leader_epoch)
    )


def _epoch(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def listed(offsets: Offsets) -> list[TopicPartition]:
    """Convert a member's offsets to confluent-kafka's."""
    return [TopicPartition(key.topic, key.partition, offset.offset) for key, offset in sorted(offsets.items())]


def written(member: GroupMetadata, stock: bytes) -> bytes:
    """Encode the member's group metadata for ``rd_kafka_consumer_group_metadata_read`` of librdkafka."""
    if not stock.startswith(_METADATA):
        raise KafkaException(
            KafkaError(
                KafkaError._NOT_IMPLEMENTED,
                f"this librdkafka writes group metadata in an unknown form ({stock[:7]!r}, not"
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
    """Return the error that names offsets which were not committed because their partitions are not owned."""
    names = ", ".join(f"{key.topic} [{key.partition}] @ {offset.offset}" for key, offset in sorted(dropped.items()))
    return KafkaError(
        KafkaError._ASSIGNMENT_LOST,
        f"not committed because this member no longer owns them: {names}",
    )


def polled_late(max_poll_interval_ms: int) -> Message:
    """Return the message with an error that a stock consumer's ``poll`` returns once after polling too late.

    Raises the error as ``KafkaException`` before confluent-kafka 2.13, where only librdkafka can create a message.
    """
    error = KafkaError(
        KafkaError._MAX_POLL_EXCEEDED,
        f"Application maximum poll interval ({max_poll_interval_ms}ms) exceeded, so the member has left its group:"
        " adjust max.poll.interval.ms for long-running message processing",
    )
    return _told_by_message(error)


def not_available(topic: str, code: int) -> Message:
    """Return the message with an error that a stock consumer's ``poll`` returns for an unreadable topic.

    Raises the error as ``KafkaException`` where `polled_late` does.
    """
    reason = f"Subscribed topic not available: {topic}: {KafkaError(code).str()}"
    return _told_by_message(KafkaError(code, reason), topic=topic)


def _told_by_message(error: KafkaError, **message: Any) -> Message:
    try:
        return Message(error=error, **message)
    except TypeError:
        raise KafkaException(error) from None


def confluent_error(error: Exception) -> KafkaError:
    """Convert a member's error to confluent-kafka's."""
    cause = error.args[0] if isinstance(error, member_errors.CommitFailedError) and error.args else error
    match cause:
        case member_errors.FencedInstanceIdError():
            return KafkaError(KafkaError.FENCED_INSTANCE_ID, str(error), fatal=True)
        case member_errors.BrokerResponseError(errno=int(code)):
            return KafkaError(code, str(error), retriable=bool(cause.retriable))
        case str():
            return KafkaError(KafkaError.UNKNOWN_MEMBER_ID, str(error))
        case member_errors.IllegalStateError():
            return KafkaError(KafkaError._STATE, str(error))
        case member_errors.KafkaTimeoutError():
            return KafkaError(KafkaError._TIMED_OUT, str(error), retriable=True)
        case member_errors.KafkaConnectionError():
            return KafkaError(KafkaError._TRANSPORT, str(error), retriable=True)
        case _:
            return KafkaError(KafkaError._FAIL, str(error) or repr(error))


@contextlib.contextmanager
def as_confluent() -> Iterator[None]:
    """Convert the member's errors to confluent-kafka's and raise them."""
    try:
        yield
    except member_errors.KafkaError as error:
        raise KafkaException(confluent_error(error)) from error
