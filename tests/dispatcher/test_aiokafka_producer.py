"""aiokafka's producer with a dispatcher, against three brokers of the coordinator."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiokafka.errors import KafkaError
from aiokafka.partitioner import murmur2
from topics import WAIT_S
from uneven import ERRORS, FEW, LEASE_RECORDS, PARTITIONS, leader_of, unacknowledged

from loadwise import AiokafkaProducer, Dispatcher, aiokafka_producer
from loadwise.coordinator import ThreadedCoordinator
from loadwise.dispatcher import BadDispatcherError

HANGS_MS = 25_000
"""How long the broker does not answer, by the coordinator's clock, which the test steps."""


async def brokers_of(producer: AiokafkaProducer, topic: str, count: int) -> Counter[int]:
    """Send records one after the other; return how many each broker got."""
    return Counter([leader_of((await producer.send_and_wait(topic, b"v")).partition) for _ in range(count)])


async def test_records_without_a_key_fill_a_batch_before_the_next(cluster: ThreadedCoordinator, topic: str) -> None:
    settled = Dispatcher(clock=lambda: 0.0)  # a slow machine ends no turn
    async with aiokafka_producer(
        dispatcher=settled, bootstrap_servers=cluster.bootstrap_servers, linger_ms=1000
    ) as producer:
        futures = [await producer.send(topic, bytes(1000)) for _ in range(160)]
        found = Counter([(await future).partition for future in futures])
    assert len(found) > PARTITIONS / 2
    assert sum(records % 16 != 0 for records in found.values()) <= 1, "16 records of 1000 bytes fill a batch"


async def test_the_turn_ends_when_the_batch_was_sent(cluster: ThreadedCoordinator, topic: str) -> None:
    settled = Dispatcher(clock=lambda: 0.0, weights={"latency": 0})
    async with aiokafka_producer(dispatcher=settled, bootstrap_servers=cluster.bootstrap_servers) as producer:
        found = {(await producer.send_and_wait(topic, b"v")).partition for _ in range(3 * PARTITIONS)}
    assert found == set(range(PARTITIONS))


async def test_keyed_records_go_where_their_keys_belong(cluster: ThreadedCoordinator, topic: str) -> None:
    async with aiokafka_producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        for key in (b"%d" % number for number in range(50)):
            found = (await producer.send_and_wait(topic, b"v", key=key)).partition
            assert found == (murmur2(key) & 0x7FFFFFFF) % PARTITIONS
        assert (await producer.send_and_wait(topic, b"v", key=b"k", partition=7)).partition == 7


async def test_a_slowed_broker_gets_less_and_comes_back(cluster: ThreadedCoordinator, topic: str) -> None:
    clock = [0.0]
    dispatcher = Dispatcher(clock=lambda: clock[0])
    async with aiokafka_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:

        async def lease() -> Counter[int]:
            clock[0] += 4.0
            return await brokers_of(producer, topic, LEASE_RECORDS)

        await lease()
        fault = cluster.faults.delay("Produce", ms=100, broker=2, times=None)
        async with asyncio.timeout(WAIT_S):
            while (await lease())[2] > FEW:
                pass
        cluster.faults.remove(fault)
        async with asyncio.timeout(WAIT_S):
            while (await lease())[2] < 5:
                pass


async def test_a_silent_broker_gets_nothing_until_it_answers(cluster: ThreadedCoordinator, topic: str) -> None:
    clock = [0.0]
    fault = cluster.faults.delay("Produce", ms=HANGS_MS, broker=3, times=1, topic=topic)
    cluster.clock.freeze()
    dispatcher = Dispatcher(clock=lambda: clock[0])
    async with aiokafka_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:
        stuck = []
        async with asyncio.timeout(WAIT_S):
            while not fault.hits:
                stuck.append(await producer.send(topic, b"v"))
                await asyncio.sleep(0.005)  # so that the sender sends
        async with asyncio.timeout(WAIT_S):
            while unacknowledged(dispatcher, 1, 2):  # noqa: ASYNC110 (no event shows it)
                await asyncio.sleep(0.005)  # until the others have answered
        clock[0] += 2.0
        assert 3 not in await brokers_of(producer, topic, 30)
        cluster.clock.step(HANGS_MS)
        cluster.clock.resume()
        assert {(await future).topic for future in stuck} == {topic}
        async with asyncio.timeout(WAIT_S):
            while True:
                clock[0] += 4.0
                if (await brokers_of(producer, topic, 30))[3] >= 5:
                    break


@pytest.mark.parametrize(("error", "silent"), ERRORS)
async def test_an_error_counts_against_the_broker_only_if_it_is_its_own(
    cluster: ThreadedCoordinator, topic: str, error: str, silent: set[int]
) -> None:
    cluster.faults.answer("Produce", error=error, topic=topic, times=None)
    dispatcher = Dispatcher()
    async with aiokafka_producer(dispatcher=dispatcher, bootstrap_servers=cluster.bootstrap_servers) as producer:
        producer._message_accumulator._batch_ttl = 0.0  # aiokafka tries again for so long if the error may pass
        with pytest.raises(KafkaError):
            await producer.send_and_wait(topic, b"v", partition=0)
        assert dispatcher._acknowledgements.moment([1, 2, 3], 0.0).silent == silent


async def test_another_partitioner_is_refused(cluster: ThreadedCoordinator) -> None:
    with pytest.raises(BadDispatcherError, match="partitioner"):
        aiokafka_producer(bootstrap_servers=cluster.bootstrap_servers, partitioner=lambda *_: 0)
    with pytest.raises(BadDispatcherError, match="dispatcher is 'x'"):
        aiokafka_producer(bootstrap_servers=cluster.bootstrap_servers, dispatcher="x")
