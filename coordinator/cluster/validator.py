"""Apply a topic's configs to a record batch: refuse it, set the broker's time, or recompress it.

Mirrors Kafka's ``LogValidator``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from loadwise.coordinator.configs.topic_configs import LogConfig, TimestampType
from loadwise.protocol.batches import BatchHeader
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.errors import MalformedBytesError, MissingCodecError
from loadwise.protocol.recompression import (
    CODECS,
    recompressed,
    with_append_time,
    with_crc,
    with_max_timestamp,
    without_append_time,
)
from loadwise.protocol.record_times import largest_timestamp, record_times

_MAX_BAD_RECORDS = 1_000
"""Most records of a batch that are named in an answer; a megabyte of packed records may be millions of them."""


class Validated(NamedTuple):
    """The batch to keep, or the reason for its refusal."""

    batch: bytes
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    bad_records: Sequence[int] = ()
    """Which of its records are why, counted from 0; empty where it is not about single records."""


def validated(
    batch: bytes, header: BatchHeader, config: LogConfig, now_ms: int, crc32c: Callable[[memoryview], int]
) -> Validated:
    """Apply a topic's configs to a sound batch. Looks at single records only where a config wants it."""
    try:
        right, header = _with_right_times(batch, header, config)
        refusal = _refusal(right, header, config, now_ms)
        if refusal is not None:
            return refusal
        changed = _changed(right, header, config, now_ms)
        return Validated(batch if changed is batch else with_crc(changed, crc32c))
    except MissingCodecError as problem:
        return Validated(batch, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(problem))
    except MalformedBytesError as problem:
        return Validated(batch, ErrorCode.CORRUPT_MESSAGE, str(problem))


def _refusal(batch: bytes, header: BatchHeader, config: LogConfig, now_ms: int) -> Validated | None:
    if config.is_compacted:
        records = enumerate(record_times(batch))
        keyless = list(islice((index for index, record in records if not record.has_key), _MAX_BAD_RECORDS))
        if keyless:
            message = "a compacted topic takes no record without a key"
            return Validated(batch, ErrorCode.INVALID_RECORD, message, keyless)
    if config.timestamp_type is TimestampType.CREATE_TIME:
        oldest_ms, newest_ms = now_ms - config.timestamp_before_max_ms, now_ms + config.timestamp_after_max_ms
        times = (header.first_timestamp, header.max_timestamp)
        if -1 not in times and not all(oldest_ms <= each <= newest_ms for each in times):
            message = f"the timestamp of a record is not from {oldest_ms} to {newest_ms}"
            records = enumerate(record_times(batch))
            bad = (index for index, record in records if not oldest_ms <= record.timestamp_ms <= newest_ms)
            return Validated(batch, ErrorCode.INVALID_TIMESTAMP, message, list(islice(bad, _MAX_BAD_RECORDS)))
    return None


def _with_right_times(batch: bytes, header: BatchHeader, config: LogConfig) -> tuple[bytes, BatchHeader]:
    """The batch with the largest timestamp of its records in its header, which a producer may have wrong."""
    if config.timestamp_type is TimestampType.LOG_APPEND_TIME or header.has_append_time:
        return batch, header  # gets the broker's time, or had a broker's
    largest_ms = largest_timestamp(batch, header)
    if largest_ms is None or largest_ms == header.max_timestamp:
        return batch, header
    return with_max_timestamp(batch, largest_ms), replace(header, max_timestamp=largest_ms)


def _changed(batch: bytes, header: BatchHeader, config: LogConfig, now_ms: int) -> bytes:
    changed = batch
    if config.timestamp_type is TimestampType.LOG_APPEND_TIME:
        changed = with_append_time(changed, header, now_ms)
    elif header.has_append_time:
        changed = without_append_time(changed, header)
    codec = CODECS.get(config.compression, header.compression)
    if codec != header.compression:
        changed = recompressed(changed, header, codec, config.compression_level)
    return changed
