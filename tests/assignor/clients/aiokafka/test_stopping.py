"""A consumer of aiokafka that is stopped while its group's coordinator takes no commits."""

import asyncio
import logging

import pytest
from topics import WAIT_S, fill, make_topic, until_so

from loadwise import aiokafka_consumer
from loadwise.assignor.clients.aiokafka import internals as aiokafka_internals


@pytest.mark.parametrize("assignor", ["range", "cooperative-weighted"])
async def test_it_stops_though_its_last_commit_is_not_taken(  # noqa: PLR0917 (fixtures)
    assignor, coordinator, topic_name, group_id, monkeypatch, caplog
):
    """aiokafka's own tries for ever."""
    make_topic(coordinator.bootstrap_servers, topic_name, 1)
    fill(coordinator.bootstrap_servers, topic_name, [3])
    fault = coordinator.faults.answer(
        "OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", times=1_000_000, group=group_id
    )
    consumer = aiokafka_consumer(
        topic_name,
        bootstrap_servers=coordinator.bootstrap_servers,
        group_id=group_id,
        assignor=assignor,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=20,
    )
    await consumer.start()
    await asyncio.wait_for(consumer.getone(), WAIT_S)
    await until_so(lambda: fault.hits > 0)
    monkeypatch.setattr(aiokafka_internals, "CLOSING_TIMEOUT_S", 0.2)
    with caplog.at_level(logging.ERROR):
        await asyncio.wait_for(consumer.stop(), WAIT_S)
    coordinator.faults.remove(fault)
    assert "could not be committed before leaving it" in caplog.text
