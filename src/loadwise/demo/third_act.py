"""The third act: one of three brokers is slowed while two producers send, one of them with a dispatcher."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from loadwise.coordinator import Coordinator

TOPIC = "loadwise-records"
LEADS = {1: 10, 2: 5, 3: 3}
"""How many partitions each broker leads."""
SLOWED = 1
SLOWED_MS = 60
RATE_PER_S = 200.0
LENGTH_S = 12.0
_TICK_S = 0.02
_BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class Delays:
    """What one producer saw."""

    partitioner: str
    taken: list[tuple[float, float]] = field(default_factory=list)
    """When each record was sent, in seconds since the beginning, and how long its acknowledgement took."""

    def mean_ms(self, begin_s: float, end_s: float) -> float:
        """Return the mean time to acknowledgement of records sent between two moments; 0 without records."""
        return 1000 * statistics.fmean([took_s for at_s, took_s in self.taken if begin_s <= at_s < end_s] or [0.0])


async def play(length_s: float, show: Callable[[float], None]) -> list[Delays]:
    """Let both producers send for so long; the broker is slow in the middle third. ``show`` gets the seconds so far."""
    from aiokafka import AIOKafkaProducer

    from loadwise.dispatcher.clients.aiokafka import aiokafka_producer

    async with Coordinator(brokers=len(LEADS)) as coordinator:
        leaders = [broker for broker, count in LEADS.items() for _ in range(count)]
        coordinator.create_topic(TOPIC, len(leaders))
        for partition, leader in enumerate(leaders):
            coordinator.move_leader(TOPIC, partition, leader)
        where: dict[str, Any] = {"bootstrap_servers": coordinator.bootstrap_servers}
        found = [Delays("aiokafka's own"), Delays("loadwise")]
        async with AIOKafkaProducer(**where) as own, aiokafka_producer(**where) as ours:
            now_s = asyncio.get_running_loop().time
            began_s = now_s()
            sending = [
                asyncio.create_task(_send(producer, delays, began_s, length_s))
                for producer, delays in zip((own, ours), found, strict=True)
            ]
            slowed = None
            while (at_s := now_s() - began_s) < length_s:
                show(at_s)
                if slowed is None and length_s / 3 <= at_s:
                    slowed = coordinator.faults.delay("Produce", ms=SLOWED_MS, broker=SLOWED, times=None)
                if slowed is not None and 2 * length_s / 3 <= at_s:
                    coordinator.faults.remove(slowed)
                await asyncio.sleep(_TICK_S)
            await asyncio.gather(*sending)
            await asyncio.gather(own.flush(), ours.flush())
    return found


async def _send(producer: Any, delays: Delays, began_s: float, length_s: float) -> None:
    now_s = asyncio.get_running_loop().time

    def acknowledged(at_s: float, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and future.exception() is None:
            delays.taken.append((at_s - began_s, now_s() - at_s))

    sent = 0
    while (elapsed_s := now_s() - began_s) < length_s:
        while sent < elapsed_s * RATE_PER_S:
            future = await producer.send(TOPIC, b"record %d" % sent)
            future.add_done_callback(partial(acknowledged, now_s()))
            sent += 1
        await asyncio.sleep(_TICK_S)


def picture(courses: Sequence[Delays], length_s: float, columns: int = 36) -> list[str]:
    """Return a line for each producer: the mean time to acknowledgement over time, on one scale."""
    step_s = length_s / columns
    means = [[each.mean_ms(step_s * at, step_s * (at + 1)) for at in range(columns)] for each in courses]
    most = max(max(row) for row in means) or 1.0
    return [
        f"{each.partitioner:>15} {''.join(_BLOCKS[round(mean / most * (len(_BLOCKS) - 1))] for mean in row)}"
        f" {each.mean_ms(length_s / 3, 2 * length_s / 3):,.0f} ms while broker {SLOWED} is slow"
        for each, row in zip(courses, means, strict=True)
    ]
