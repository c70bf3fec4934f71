"""The partition of a key: by Java's default, which most clients share, and by librdkafka's partitioners."""

from __future__ import annotations

from struct import Struct, unpack_from
from zlib import crc32

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF

_WORDS = [Struct(f"<{count}I").unpack_from for count in range(64)]
"""Unpacks the whole words of short keys: making the format costs as much as hashing a word or two."""


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of Kafka's clients, as an unsigned number (``Utils.murmur2``)."""
    length = len(data)
    count = length >> 2
    digest = 0x9747B28C ^ length
    for word in _WORDS[count](data) if count < len(_WORDS) else unpack_from(f"<{count}I", data):
        word = word * _M & _MASK  # noqa: PLW2901 (the same value, mixed)
        digest = (digest * _M ^ (word ^ word >> 24) * _M) & _MASK
    if length & 3:
        digest = (digest ^ int.from_bytes(data[count << 2 :], "little")) * _M & _MASK
    digest = (digest ^ digest >> 13) * _M & _MASK
    return digest ^ digest >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key (``BuiltInPartitioner.partitionForKey``)."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partition_by_crc32(key: bytes, partitions: int) -> int:
    """Return the partition of a key under librdkafka's ``consistent`` and ``consistent_random``, its default."""
    return crc32(key) % partitions


def partition_by_fnv1a(key: bytes, partitions: int) -> int:
    """Return the partition of a key under librdkafka's ``fnv1a`` and ``fnv1a_random`` (``rd_fnv1a``)."""
    digest = 0x811C9DC5
    for byte in key:
        digest = (digest ^ byte) * 0x01000193 & _MASK
    return min(digest, -digest & _MASK) % partitions  # the absolute value of a signed number, as Sarama takes it
