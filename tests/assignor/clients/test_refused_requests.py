"""What a cooperative member does when its group's coordinator refuses a request, as Java's consumer does.

The table is that of ``AbstractCoordinator`` (``JoinGroupResponseHandler``, ``SyncGroupResponseHandler``,
``HeartbeatResponseHandler``) and ``ConsumerCoordinator.OffsetCommitResponseHandler`` in apache/kafka. A member that
keeps its generation keeps its partitions. One whose generation is refused has lost them; it keeps its member id where
only the generation was refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiokafka
import kafka
import pytest
from confluent_kafka import KafkaException
from readers import READERS, AiokafkaReader
from topics import WAIT_S, fill, make_topic

PARTITIONS, RECORDS = 4, 25
EVERYTHING = frozenset(range(PARTITIONS))
SETTINGS = {"assignor": "cooperative-weighted", "enable_auto_commit": False}
KEPT, LOST = "kept", "lost"
COORDINATOR_MOVES = ["COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"]
TABLE = [
    *(("JoinGroup", error, KEPT) for error in COORDINATOR_MOVES),
    ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS", KEPT),
    ("JoinGroup", "REBALANCE_IN_PROGRESS", KEPT),
    ("JoinGroup", "UNKNOWN_MEMBER_ID", LOST),
    *(("SyncGroup", error, KEPT) for error in COORDINATOR_MOVES),
    ("SyncGroup", "REBALANCE_IN_PROGRESS", KEPT),
    ("SyncGroup", "ILLEGAL_GENERATION", LOST),
    ("SyncGroup", "UNKNOWN_MEMBER_ID", LOST),
    *(("Heartbeat", error, KEPT) for error in COORDINATOR_MOVES),
    ("Heartbeat", "REBALANCE_IN_PROGRESS", KEPT),
    ("Heartbeat", "ILLEGAL_GENERATION", LOST),
    ("Heartbeat", "UNKNOWN_MEMBER_ID", LOST),
    *(("OffsetCommit", error, KEPT) for error in COORDINATOR_MOVES),
    ("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", KEPT),
    ("OffsetCommit", "REBALANCE_IN_PROGRESS", KEPT),
    ("OffsetCommit", "ILLEGAL_GENERATION", LOST),
    ("OffsetCommit", "UNKNOWN_MEMBER_ID", LOST),
]


FATAL = [
    ("JoinGroup", "GROUP_AUTHORIZATION_FAILED"),
    ("JoinGroup", "GROUP_MAX_SIZE_REACHED"),
    ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL"),
    ("JoinGroup", "INVALID_GROUP_ID"),
    ("JoinGroup", "INVALID_SESSION_TIMEOUT"),
    ("JoinGroup", "FENCED_INSTANCE_ID"),
    ("SyncGroup", "GROUP_AUTHORIZATION_FAILED"),
    ("SyncGroup", "FENCED_INSTANCE_ID"),
    ("Heartbeat", "FENCED_INSTANCE_ID"),
    ("OffsetCommit", "GROUP_AUTHORIZATION_FAILED"),
    ("OffsetCommit", "FENCED_INSTANCE_ID"),
    ("OffsetCommit", "TOPIC_AUTHORIZATION_FAILED"),
    ("OffsetCommit", "OFFSET_METADATA_TOO_LARGE"),
    ("OffsetCommit", "INVALID_COMMIT_OFFSET_SIZE"),
]
"""What no repetition mends: Java's consumer throws it out of ``poll``, or of ``commitSync``."""
UNKNOWN_TO_AIOKAFKA = ["FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED"]


COMMIT_ERRORS = (KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)


@pytest.fixture(params=list(READERS))
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Make a reader with one of the clients."""
    return READERS[request.param]


async def polled_until(condition: Callable[[], Any], *readers: Any) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.gather(*(reader.poll() for reader in readers))


@pytest.mark.parametrize(("api", "error", "outcome"), TABLE)
async def test_a_refused_request_costs_a_member_its_partitions_only_where_its_generation_is_refused(  # noqa: PLR0917
    make, api, error, outcome, coordinator, topic_name, group_id
):
    servers = coordinator.bootstrap_servers
    make_topic(servers, topic_name, PARTITIONS)
    fill(servers, topic_name, [RECORDS] * PARTITIONS)
    reader = make()
    await reader.start(servers, group_id, **SETTINGS)
    reader.subscribe([topic_name])
    try:
        await polled_until(lambda: len(reader.read) == RECORDS * PARTITIONS, reader)
        if outcome == LOST:
            await reader.commit()  # of what is kept nothing is committed: it would be read again if it were lost
        member_id = reader.member_id()
        fault = coordinator.faults.answer(api, error=error, times=1, group=group_id)
        if api in ("JoinGroup", "SyncGroup"):
            coordinator.groups.rebalance(group_id)
        elif api == "OffsetCommit":
            try:
                await reader.commit()
            except COMMIT_ERRORS:
                assert error not in (*COORDINATOR_MOVES, "COORDINATOR_LOAD_IN_PROGRESS"), "Java commits again"
        await polled_until(lambda: fault.hits == 1, reader)
        if outcome == LOST:
            await polled_until(lambda: ("lost", EVERYTHING) in reader.told, reader)
            if error == "UNKNOWN_MEMBER_ID":  # the coordinator, which has not forgotten it, waits for it otherwise
                coordinator.groups.expire_session(group_id, member_id)
        await polled_until(
            lambda: coordinator.groups.get(group_id).state == "Stable" and reader.owned() == EVERYTHING, reader
        )
        fill(servers, topic_name, [1] * PARTITIONS)
        everything = [(partition, offset) for partition in EVERYTHING for offset in range(RECORDS + 1)]
        await polled_until(lambda: len(reader.read) >= len(everything), reader)
        assert sorted(reader.read) == sorted(everything), "none twice, and none lost"
        told = [("assigned", EVERYTHING), *([("lost", EVERYTHING), ("assigned", EVERYTHING)] * (outcome == LOST))]
        assert reader.told == told
        assert (reader.member_id() == member_id) is (error != "UNKNOWN_MEMBER_ID")
    finally:
        coordinator.faults.clear()
        await reader.stop()


@pytest.mark.parametrize(("api", "error"), FATAL)
async def test_what_no_repetition_mends_is_raised(make, api, error, coordinator, topic_name, group_id):  # noqa: PLR0917
    servers = coordinator.bootstrap_servers
    make_topic(servers, topic_name, PARTITIONS)
    reader = make()
    await reader.start(servers, group_id, **SETTINGS)
    reader.subscribe([topic_name])
    try:
        fill(servers, topic_name, [1] * PARTITIONS)
        await polled_until(lambda: len(reader.read) == PARTITIONS, reader)
        coordinator.faults.answer(api, error=error, times=None, group=group_id)
        if api in ("JoinGroup", "SyncGroup"):
            coordinator.groups.rebalance(group_id)
        with pytest.raises(COMMIT_ERRORS) as raised:  # noqa: PT012 (it may be any of many polls)
            if api == "OffsetCommit":
                await reader.commit()
            await polled_until(lambda: False, reader)
        if isinstance(raised.value, KafkaException):
            assert raised.value.args[0].name() == error
        elif not (isinstance(reader, AiokafkaReader) and error in UNKNOWN_TO_AIOKAFKA):
            name = error.title().replace("_", "")
            assert name in repr(raised.value)
    finally:
        coordinator.faults.clear()
        await reader.stop()


@pytest.mark.parametrize("delay_ms", [0, 300], ids=["at once", "slowly"])
async def test_a_commit_outlasts_rebalances_in_which_the_partitions_stay(
    make, delay_ms, coordinator, topic_name, group_id
):
    """Between JoinGroup and SyncGroup the coordinator takes no commit: the client waits, and commits once more."""
    servers = coordinator.bootstrap_servers
    make_topic(servers, topic_name, PARTITIONS)
    fill(servers, topic_name, [RECORDS] * PARTITIONS)
    reader = make()
    await reader.start(servers, group_id, **SETTINGS)
    reader.subscribe([topic_name])
    try:
        await polled_until(lambda: len(reader.read) == RECORDS * PARTITIONS, reader)
        coordinator.faults.delay("SyncGroup", ms=delay_ms, group=group_id, times=None)
        generation = coordinator.groups.get(group_id).generation
        commits = 0
        while coordinator.groups.get(group_id).generation < generation + 5:
            if coordinator.groups.get(group_id).state == "Stable":
                coordinator.groups.rebalance(group_id)
            await reader.poll()
            await reader.commit()
            commits += 1
        assert commits >= 5
        assert ("lost", EVERYTHING) not in reader.told
        assert len(reader.read) == RECORDS * PARTITIONS
    finally:
        coordinator.faults.clear()
        await reader.stop()
