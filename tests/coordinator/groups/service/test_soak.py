"""Hours of groups under a fake clock: clients of both protocols that come, crash, move up and down, and restarts."""

from __future__ import annotations

from random import Random

import pytest
from group_clients import HOUR_MS, TOPICS, ClassicClient, ConsumerClient, World
from seeds import SEED

BEAT_MS = 15_000
GROUPS = ["classic", "consumer", "mixed", "mixed"]


def a_client(world: World, number: int) -> ClassicClient | ConsumerClient:
    random = world.random
    group_id = random.choice(GROUPS)
    topics = random.sample(sorted(TOPICS), random.randint(1, len(TOPICS)))
    instance_id = f"i{number % 3}" if random.random() < 0.3 else None
    is_classic = group_id == "classic" or (group_id == "mixed" and random.random() < 0.5)
    if is_classic:
        return ClassicClient(world, group_id, f"c{number}", topics, instance_id)
    assignor = random.choice([None, "uniform", "weighted"])
    return ConsumerClient(world, group_id, f"k{number}", topics, instance_id, assignor)


@pytest.mark.parametrize("hours", [3, pytest.param(24, marks=pytest.mark.long)])
def test_hours_of_groups(hours: int) -> None:
    world = World(Random(SEED), initial_rebalance_delay_ms=3000)
    clients: list[ClassicClient | ConsumerClient] = []
    numbers = iter(range(1_000_000))
    end = world.now_ms + hours * HOUR_MS
    while world.now_ms < end:
        random = world.random
        # Hours of quiet alternate with hours in which something happens at every third step.
        is_busy = (world.now_ms // HOUR_MS) % 2 == 0
        if random.random() < (0.3 if is_busy else 0.01):
            match random.randrange(10):
                case 0 | 1 | 2:
                    if len(clients) < 8:
                        clients.append(a_client(world, next(numbers)))
                case 3 | 4:
                    if clients:
                        clients.pop(random.randrange(len(clients))).leave()
                case 5:
                    if clients:
                        clients.pop(random.randrange(len(clients))).crash()
                case 6:
                    for client in clients:
                        if isinstance(client, ConsumerClient) and random.random() < 0.3:
                            client.resubscribe(random.sample(sorted(TOPICS), 1))
                case 7:
                    name = random.choice(sorted(TOPICS))
                    topic = world.topics.get(name)
                    assert topic is not None
                    if len(topic.partitions) < 12:
                        world.topics.set(name, len(topic.partitions) + 1)
                case 8:
                    world.operate(random.choice(GROUPS))
                case 9:
                    if random.random() < 0.2:
                        world.restart()
                    else:
                        world.move(random.choice(GROUPS))
        if random.random() < 0.1:
            world.be_late()
        for client in clients:
            client.step()
        world.check_all()
        if random.random() < 0.01:
            world.check_replay()
        world.pass_ms(BEAT_MS)
    for client in clients:
        client.crash()
    world.drain()
    went = world.seen
    for what in (
        "led",
        "commit",
        "restart",
        "move",
        "late",
        "classic group became a consumer group",
        "consumer group became a classic group",
        "session ended by a test",
        "forced rebalance",
    ):
        assert went.get(what, 0) >= hours // 8, f"the day was too quiet: {what} {went}"
