"""Record batches for tests, written by kafka-python."""

from __future__ import annotations

from collections.abc import Sequence

from kafka.record import MemoryRecordsBuilder


def batch(
    values: Sequence[bytes],
    *,
    timestamp: int = 1000,
    producer: tuple[int, int, int] | None = None,
    compression: int = 0,
    transactional: bool = False,
) -> bytes:
    """One batch v2; its records are a millisecond apart. ``producer``: id, epoch and first sequence number."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=compression, batch_size=1_000_000)
    for index, value in enumerate(values):
        builder.append(timestamp=timestamp + index, key=None, value=value)
    if producer is not None:
        builder.set_producer_state(*producer, is_transactional=transactional)
    builder.close()
    return bytes(builder.buffer())
