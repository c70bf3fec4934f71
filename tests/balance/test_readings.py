"""Bytes in of partitions, from two readings of their offsets and sizes."""

from __future__ import annotations

import pytest

from loadwise.balance.cluster import Broker
from loadwise.balance.readings import Metadata, Offsets, Placed, cluster_of

SECONDS = 10


def _bytes_in(*logs: tuple[Offsets, int, int]) -> list[float]:
    """Bytes in per second of the partitions of one topic, given their offsets, earlier sizes and sizes."""
    names = [("state", number) for number in range(len(logs))]
    metadata = Metadata(brokers=(Broker(id=1),), placed=dict.fromkeys(names, Placed((1,), 1)))
    earlier = {(name, 1): size for name, (_, size, _) in zip(names, logs, strict=True)}
    sizes = {(name, 1): size for name, (_, _, size) in zip(names, logs, strict=True)}
    offsets = {name: each for name, (each, _, _) in zip(names, logs, strict=True)}
    cluster = cluster_of(metadata, earlier, sizes, offsets, elapsed_s=SECONDS, reads=1)
    return [each.bytes_in_per_s for each in cluster.partitions]


def _offsets(beginning: int = 0, earlier_beginning: int | None = None, earlier_end: int = 10_000_000) -> Offsets:
    """Those of 1,000 records a second."""
    return Offsets(
        earlier_beginning=beginning if earlier_beginning is None else earlier_beginning,
        beginning=beginning,
        earlier_end=earlier_end,
        end=earlier_end + 1_000 * SECONDS,
    )


def test_bytes_in_of_a_compacted_log_are_its_growth() -> None:
    """10,000 records of 1 kB are left of 10,000,000."""
    assert _bytes_in((_offsets(), 10_000_000, 20_000_000)) == [1_000_000]


def test_a_log_that_was_cleaned_meanwhile_has_the_records_of_its_topic() -> None:
    logs = [(_offsets(), 10_000_000, 20_000_000), (_offsets(), 90_000_000, 9_000_000)]
    assert _bytes_in(*logs) == [1_000_000, 1_000_000]


def test_a_log_that_lost_its_oldest_records_has_the_mean_of_the_others() -> None:
    """1,000,000 records of 500 bytes remain; other partitions of the topic have larger ones."""
    lost = _offsets(beginning=9_010_000, earlier_beginning=8_000_000)
    in_both = _bytes_in((lost, 1_000_000_000, 500_000_000), (_offsets(), 0, 20_000_000))
    assert in_both == pytest.approx([500_000, 2_000_000])


def test_a_log_that_did_not_grow_by_its_size_has_the_mean_of_its_records() -> None:
    assert _bytes_in((_offsets(earlier_end=0), 5_000_000, 5_000_000)) == [500_000]
