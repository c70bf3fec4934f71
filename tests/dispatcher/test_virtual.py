"""The dispatcher in virtual time, beside the partitioners of kafka-python, KIP-480 and Java."""

from __future__ import annotations

import pytest

from benchmarks.dispatcher.virtual import play


def test_a_slowed_broker_costs_less_than_under_javas_adaptive_partitioner() -> None:
    java, ours = (play(policy, slowed_ms=50.0, rate=5000.0, seconds=9.0) for policy in ("adaptive", "loadwise"))
    assert ours.p99_ms < java.p99_ms / 2
    assert ours.mean_ms < java.mean_ms / 2


def test_a_weaker_broker_gets_what_it_can_take() -> None:
    java, ours = (play(policy, weaker=3.0, rate=9000.0, seconds=12.0) for policy in ("adaptive", "loadwise"))
    assert ours.records_per_s > java.records_per_s
    assert ours.mean_ms < java.mean_ms / 2


@pytest.mark.parametrize("rival", ["random", "sticky", "adaptive"])
def test_without_a_slow_broker_it_is_no_worse(rival: str) -> None:
    theirs, ours = (play(policy, rate=5000.0, seconds=6.0) for policy in (rival, "loadwise"))
    assert ours.records_per_s >= theirs.records_per_s * 0.98
    assert ours.mean_ms <= theirs.mean_ms * 1.02
    assert ours.p99_ms <= theirs.p99_ms * 1.02


def test_brokers_that_lead_few_partitions_are_used_as_well() -> None:
    random, ours = (play(policy, rate=20_000.0, seconds=12.0) for policy in ("random", "loadwise"))
    assert ours.records_per_s > 1.12 * random.records_per_s
