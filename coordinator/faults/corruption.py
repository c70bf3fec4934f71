"""Breaks the CRC of record batches, as a bad disk or wire would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loadwise.coordinator.calls import Response
from loadwise.protocol.batches import HEADER_BYTES, read_header


def has_records(response: Response) -> bool:
    """Return whether it is a fetch response with records."""
    return any(True for _ in _rows(response))


def corrupt(response: Response) -> None:
    """Change the last byte of each record batch in the answer to a fetch."""
    for row in _rows(response):
        row.records = _with_bad_checksums(row.records)


def _rows(response: Response) -> Iterator[Any]:
    for topic in getattr(response, "responses", None) or ():
        for row in getattr(topic, "partitions", None) or ():
            if getattr(row, "records", None):
                yield row


def _with_bad_checksums(records: bytes) -> bytes:
    data, position = bytearray(records), 0
    while (header := read_header(bytes(data[position : position + HEADER_BYTES]))) is not None:
        end = position + header.size_bytes
        if end > len(data):
            break
        data[end - 1] ^= 0xFF
        position = end
    return bytes(data)
