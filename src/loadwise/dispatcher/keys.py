"""The partition of a key for Kafka's producers: Java's default, and librdkafka's ``murmur2_random``."""

from __future__ import annotations

from struct import iter_unpack

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of Kafka's clients, as an unsigned number (``Utils.murmur2``)."""
    length = len(data)
    whole = length & ~3
    digest = 0x9747B28C ^ length
    for (word,) in iter_unpack("<I", memoryview(data)[:whole]):
        word = word * _M & _MASK  # noqa: PLW2901 (the same value, mixed)
        digest = (digest * _M & _MASK) ^ ((word ^ word >> 24) * _M & _MASK)
    if whole != length:
        digest = (digest ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    digest = (digest ^ digest >> 13) * _M & _MASK
    return digest ^ digest >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key (``BuiltInPartitioner.partitionForKey``)."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
