"""Real consumers in real groups over loopback: both clients, mixed, each as the leader."""

import asyncio
import threading

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from kafka import KafkaConsumer, KafkaProducer
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as KafkaPythonSticky

from loadwise.assignor.clients import aiokafka, kafka_python
from loadwise.assignor.group_history import GroupHistory
from loadwise.protocol.consumer import Subscription
from loadwise.protocol.user_data import StickyUserData

CLIENTS = ("kafka-python", "aiokafka")


@pytest.mark.parametrize("leading", CLIENTS)
@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "weighted"])
async def test_a_mixed_group(group, topic, name, leading):
    following = CLIENTS[1 - CLIENTS.index(leading)]
    leader = await group.join(leading, topic, assignor=name)
    [alone] = await group.settle(6)
    follower = await group.join(following, topic, assignor=name)
    kept, moved = await group.settle(6, [3, 3])
    assert moved <= alone
    if name in ("sticky", "weighted"):
        assert kept == alone - moved
    third = await group.join(following, topic, assignor=name)
    three = await group.settle(6, [2, 2, 2])
    if name in ("sticky", "weighted"):
        assert three[0] < kept
        assert three[1] < moved
    assert leader.consumer.rebalances.led >= 3
    assert follower.consumer.rebalances.led == third.consumer.rebalances.led == 0

    await group.leave(leader)
    after = await group.settle(6, [3, 3])
    if name in ("sticky", "weighted"):
        assert after[0] > three[1]
        assert after[1] > three[2]


@pytest.mark.parametrize("name", ["cooperative-sticky", "cooperative-weighted"])
async def test_a_cooperative_group_moves_in_two_rounds_and_revokes_nothing_else(group, topic, name, until):
    first = await group.join("kafka-python", topic, assignor=name)
    [alone] = await group.settle(6)
    second = await group.join("kafka-python", topic, assignor=name)
    led = first.consumer.rebalances.led
    seen = []

    def moved():
        taken = second.owned()  # before what the first still holds: between the two it can only give up more
        seen.append((first.owned(), taken))
        return [len(owned) for owned in seen[-1]] == [3, 3]

    await until(moved)
    kept, given_on = await group.settle(6, [3, 3])
    assert not any(ours & theirs for ours, theirs in seen)
    assert all(ours >= kept for ours, _ in seen), "what it keeps, it holds all the time"
    assert kept == alone - given_on
    assert first.consumer.rebalances.led >= led + 2, "one rebalance to give up, one to take over"
    assert second.consumer.rebalances.led == 0

    await group.leave(first)
    [rest] = await group.settle(6)
    assert rest > given_on


async def test_a_member_that_narrows_its_subscription_orphans_nothing(group, coordinator, topic, until):
    """With kafka-python's own cooperative sticky, nobody ever gets what it has given up."""
    other = f"{topic}-other"
    coordinator.create_topic(other, 2)
    narrowing = await group.join("kafka-python", topic, other, assignor="cooperative-sticky")
    await group.settle(8)
    await group.join("kafka-python", topic, other, assignor="cooperative-sticky")
    await group.settle(8, [4, 4])
    narrowing.consumer.subscribe([topic])
    await until(lambda: {name for name, _ in narrowing.owned()} == {topic})
    await group.settle(8, [4, 4])
    assert {name for name, _ in narrowing.owned()} == {topic}


async def test_lag_is_shared_out_and_capacity_counts(group, topic):
    def fill():
        producer = KafkaProducer(bootstrap_servers=group.settings["bootstrap_servers"])
        for partition, records in enumerate((80, 20, 20, 20, 20, 80)):
            for _ in range(records):
                producer.send(topic, b"x", partition=partition)
        producer.close()

    await asyncio.to_thread(fill)
    # With readings much closer than the five seconds that are usual, it shows earlier of large partitions than of small
    # ones that no more records come, and in between the demand is not in proportion to the records.
    leader = await group.join("aiokafka", topic, auto_offset_reset="earliest")
    second = await group.join("kafka-python", topic, capacity=2.0, auto_offset_reset="earliest")
    owned = await group.settle(6)
    records = {0: 80, 1: 20, 2: 20, 3: 20, 4: 20, 5: 80}
    assert [sum(records[number] for _, number in partitions) for partitions in owned] == [80, 160]
    assert leader.consumer.rebalances.fallbacks == 0

    await group.leave(leader)
    await group.settle(6)
    assert second.consumer.rebalances.fallbacks == 0


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_leader_s_history_makes_its_decisions_again(group, topic, client, tmp_path, until):
    member = await group.join(client, topic, auto_offset_reset="earliest", lag_interval_s=0.05)
    await until(lambda: len(member.consumer.rebalances.decisions) >= 3)
    history = member.consumer.rebalances.history()
    history.save(tmp_path / "group.jsonl")
    again = GroupHistory.load(tmp_path / "group.jsonl")
    assert again.recorded == tuple(map(str, history.decisions))
    assert list(again.differences()) == []
    assert member.consumer.explain() is not None


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_sticky_claim_says_since_when(group, topic, client):
    """aiokafka #1176: its own sticky assignor never does, so after an outage old claims look as good as new ones."""
    member = await group.join(client, topic, assignor="sticky")
    await group.settle(6)
    claim = Subscription.decode(bytes(member.consumer.assignor.metadata([topic])))
    said = StickyUserData.decode(claim.user_data)
    coordinator = member.consumer._coordinator
    generation = coordinator.generation if client == "aiokafka" else coordinator._generation.generation_id
    assert generation > 0
    assert said == StickyUserData(owned={topic: [0, 1, 2, 3, 4, 5]}, generation=generation)
    assert claim.generation == generation


async def test_the_explicit_forms(group, topic):
    await group.poll(
        lambda: KafkaConsumer(topic, partition_assignment_strategy=[kafka_python.assignor("sticky")], **group.settings)
    )
    [alone] = await group.settle(6)
    await group.run(
        AIOKafkaConsumer(topic, partition_assignment_strategy=[aiokafka.assignor("sticky")], **group.settings)
    )
    kept, moved = await group.settle(6, [3, 3])
    assert kept == alone - moved
    await group.leave(group.members[0])
    [rest] = await group.settle(6)
    assert rest > moved


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_stock_sticky_member_keeps_its_partitions_under_our_leader(group, topic, client):
    await group.join("aiokafka", topic, assignor="sticky")
    await group.settle(6)
    if client == "kafka-python":
        stock = [KafkaPythonSticky]  # its user data has a form of its own
        await group.poll(lambda: KafkaConsumer(topic, partition_assignment_strategy=stock, **group.settings))
    else:
        await group.run(AIOKafkaConsumer(topic, partition_assignment_strategy=[AiokafkaSticky], **group.settings))
    _, had = await group.settle(6, [3, 3])
    await group.join("aiokafka", topic, assignor="sticky")
    _, kept, _ = await group.settle(6, [2, 2, 2])
    assert kept < had


@pytest.mark.parametrize("client", CLIENTS)
async def test_closing_a_consumer_ends_what_read_its_lag(group, group_id, topic, client):
    member = await group.join(client, topic, assignor="weighted")

    def readers():
        running = [thread.name for thread in threading.enumerate()] + [task.get_name() for task in asyncio.all_tasks()]
        return [name for name in running if name == f"loadwise-lag-{group_id}"]

    assert len(readers()) == 1
    await group.leave(member)
    assert readers() == []
