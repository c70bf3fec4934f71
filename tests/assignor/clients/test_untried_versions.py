"""A client that was never tried: a group works with what takes no private part of it, and a log line names the rest."""

from __future__ import annotations

import logging
import sys
from dataclasses import replace

import pytest
from topics import fill

from loadwise import confluent_consumer
from loadwise.assignor.clients.aiokafka import consumer as aiokafka
from loadwise.assignor.clients.kafka_python import consumer as kafka_python
from loadwise.assignor.clients.membership import member as membership
from loadwise.assignor.errors import UnsupportedByClientError

CLIENTS = {"kafka-python": kafka_python, "aiokafka": aiokafka}
RECORDS = [50, 10, 10, 10, 10, 10]


@pytest.fixture(params=list(CLIENTS))
def untried(request, monkeypatch):
    """A client that is newer than any that was tried, and whose private parts we cannot have."""
    adapter = CLIENTS[request.param]
    monkeypatch.setattr(adapter, "TRIED", replace(adapter.TRIED, installed="9.0.1"))
    monkeypatch.setitem(sys.modules, f"{adapter.__name__}_internals", None)
    return request.param


async def test_a_group_shares_its_lag_and_takes_over_from_who_leaves(group, coordinator, topic, untried, caplog):
    fill(coordinator.bootstrap_servers, topic, RECORDS)
    with caplog.at_level(logging.WARNING, logger="loadwise"):
        first = await group.join(untried, topic, auto_offset_reset="earliest")
        await group.settle(6, [6])
        assert first.consumer.rebalances.fallbacks == 0, "it knows the lag"
        second = await group.join(untried, topic, auto_offset_reset="earliest")
        owned = await group.settle(6)
    (told,) = {record.getMessage() for record in caplog.records if "was not tested" in record.getMessage()}
    assert told.startswith(f"{untried} 9.0.1 was not tested with loadwise (tested: ")
    assert sorted(sum(RECORDS[partition] for _, partition in each) for each in owned) == [50, 50]
    assert first.consumer.assignor.explain() is None, "the load is not watched"
    await group.leave(first)
    await group.settle(6, [6])
    assert second.consumer.rebalances.led


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
async def test_every_eager_strategy_is_there(group, topic, untried, name):
    for _ in range(2):
        await group.join(untried, topic, assignor=name)
    await group.settle(6, [3, 3])


def test_confluents_consumer_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(membership, "TRIED", replace(membership.TRIED, installed="9.0.1"))
    with pytest.raises(UnsupportedByClientError, match=r"version 9\.0\.1 was not tested .* install one of those"):
        confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", "log_level": 0})
