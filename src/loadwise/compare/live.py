"""The situation of a running group: its members and their partitions, with lag, arrival rate or both as the load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from loadwise.assignor.load.drain import drain_weight
from loadwise.assignor.load.lag import PartitionOffsets, lag_of
from loadwise.assignor.load.source import TopicLoads
from loadwise.compare.errors import LiveGroupError
from loadwise.compare.situation import LiveLoad, Situation, Uncommitted
from loadwise.running_group.admin import connected
from loadwise.running_group.members import GroupReading, RunningGroup
from loadwise.running_group.reading import read, read_rates

_STABLE = "Stable"
RATE_OVER_S = 60.0
"""The arrival rate is that of the last minute."""


def read_situation(
    bootstrap_servers: str,
    group_id: str,
    *,
    load: LiveLoad = LiveLoad.LAG,
    horizon_s: float = 60.0,
    uncommitted: Uncommitted = Uncommitted.EARLIEST,
    settings: Mapping[str, Any] | None = None,
) -> Situation:
    """Read a group. Raises `BadConnectionError`, `UnreadableGroupError`, and `LiveGroupError` while it rebalances.

    Where nothing is committed, brokers do not know where the members began, which their ``auto.offset.reset`` decides:
    ``uncommitted`` stands for it here, so that all records of such a partition count as lag, or none. ``horizon_s`` is
    the time to drain the lag in, for the demand. ``settings`` are keyword arguments of kafka-python's clients:
    credentials, timeouts.
    """
    with connected(bootstrap_servers, settings, client_id="loadwise-compare") as admin:
        reading = read(admin, group_id)
        group = _stable(reading.group)
        rates = {}
        if load is not LiveLoad.LAG:
            rates = read_rates(admin, reading, now_ms=int(time.time() * 1000), over_s=RATE_OVER_S)
    from_beginning = uncommitted is Uncommitted.EARLIEST
    lag = {partition: float(lag_of(at, from_beginning=from_beginning)) for partition, at in reading.offsets.items()}
    loads: TopicLoads
    match load:
        case LiveLoad.LAG:
            loads, told = _by_topic(lag, reading), "its lag is the load"
        case LiveLoad.RATE:
            loads, told = _by_topic(rates, reading), "what arrived in the last minute is the load"
        case LiveLoad.DEMAND:
            told = f"what arrived in the last minute, and the lag drained in {horizon_s:g} s, is the load"
            loads = drain_weight(_by_topic(lag, reading), _by_topic(rates, reading), 0.0, horizon_s=horizon_s)
    kind = "classic protocol" if group.is_classic else "consumer protocol, KIP-848"
    return Situation(
        about=f"The group {group_id} at {bootstrap_servers}, which runs under {group.protocol} ({kind}); {told}."
        f"{_about_uncommitted(reading.offsets, uncommitted) if load is not LiveLoad.RATE else ''}",
        members=[each.member for each in group.members],
        labels=group.labels,
        partitions=reading.partitions,
        load=loads,
        load_unit="records" if load is LiveLoad.LAG else "records/s",
        racks=reading.racks,
    )


def _stable(group: RunningGroup) -> RunningGroup:
    if group.state != _STABLE:
        raise LiveGroupError(
            f"the group {group.group_id} is rebalancing (its state is {group.state}); try again when it is done"
        )
    return group


def _about_uncommitted(offsets: Mapping[tuple[str, int], PartitionOffsets], uncommitted: Uncommitted) -> str:
    count = sum(at.committed is None and at.beginning < at.end for at in offsets.values())
    if not count:
        return ""
    counted = "all of their records" if uncommitted is Uncommitted.EARLIEST else "no records"
    return f" {count} of its partitions have no commit: {counted} counted (--uncommitted {uncommitted})."


def _by_topic(loads: Mapping[tuple[str, int], float], reading: GroupReading) -> dict[str, list[float | None]]:
    rows: dict[str, list[float | None]] = {topic: [None] * count for topic, count in reading.partitions.items()}
    for (topic, partition), load in loads.items():
        rows[topic][partition] = load
    return rows
