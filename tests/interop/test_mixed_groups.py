"""Groups in which our assignors sit beside Java's and librdkafka's, against both brokers, while records come in."""

from __future__ import annotations

import itertools

import pytest

pytestmark = pytest.mark.kafka

PARTITIONS = 6
EAGER = ("kafka-python", "aiokafka", "java", "confluent-kafka")
COOPERATIVE = EAGER
# Every client leads once under each strategy, and then leaves or crashes, by turns.
CASES = [
    *zip(itertools.repeat("range"), EAGER, itertools.cycle(["leaves", "crashes"])),
    *zip(itertools.repeat("roundrobin"), EAGER, itertools.cycle(["crashes", "leaves"])),
    *zip(itertools.repeat("cooperative-sticky"), COOPERATIVE, itertools.cycle(["leaves", "crashes"])),
]

# Nobody is evicted because the machine is slow, only who crashes. Kafka allows no shorter sessions than 6 s; that of a
# leader is longer, since it must not lose its place before it is to.
STEADY_MS, LEADER_CRASHES_MS, CRASHES_MS = 60_000, 10_000, 6_000


@pytest.mark.parametrize(("strategy", "leader", "end"), CASES, ids=lambda value: value)
def test_every_partition_has_one_owner_in_each_generation_and_no_record_is_lost(  # noqa: PLR0917 (fixtures)
    topic, join, eventually, production, strategy, leader, end
):
    clients = COOPERATIVE if strategy == "cooperative-sticky" else EAGER
    group = f"group-of-{topic}"
    everybody = []

    def joins(client, session_timeout_ms=STEADY_MS):
        everybody.append(join(client, group, topic, strategy, session_timeout_ms))
        return everybody[-1]

    def settle(*members):
        """Wait until all are of one generation in which every partition is owned once; who leads it?"""

        def settled():
            owned = [partition for member in members for partition in member.owned]
            generations = {member.generation for member in members}
            return len(generations) == 1 and sorted(owned) == list(range(PARTITIONS)) and all(m.owned for m in members)

        eventually(settled, everybody)
        generation = members[0].generation
        eventually(lambda: any(generation in member.led() for member in everybody), everybody)
        return [member for member in everybody if generation in member.led()]

    # The first leads until it goes; one of the others goes before it, in the other way.
    first = joins(leader, LEADER_CRASHES_MS if end == "crashes" else STEADY_MS)
    assert settle(first) == [first]
    goer, *stayers = [client for client in clients if client != leader]
    goes = joins(goer, CRASHES_MS if end == "leaves" else STEADY_MS)
    stay = [joins(client) for client in stayers]
    assert settle(first, goes, *stay) == [first]
    goes.crash() if end == "leaves" else goes.leave()
    assert settle(first, *stay) == [first]
    back = joins(goer)
    assert settle(first, *stay, back) == [first]
    first.leave() if end == "leaves" else first.crash()
    [heir] = settle(*stay, back)
    assert heir in (*stay, back)

    produced = production.stop()
    assert produced
    eventually(lambda: produced <= set().union(*(member.processed for member in everybody)), everybody)

    for generation in set().union(*(member.assigned for member in everybody)):
        given = [partition for member in everybody for partition in member.assigned.get(generation, ())]
        assert len(given) == len(set(given)), f"two owners in generation {generation}: {everybody}"
        assert sum(generation in member.led() for member in everybody) <= 1
    if strategy == "cooperative-sticky":
        # Members go on reading while they rebalance: what one had, another gets one generation later at the earliest.
        # Who was in no generation between, as where a busy machine let its session end, has given up everything.
        for member, other in itertools.permutations(everybody, 2):
            for before, after in itertools.pairwise(sorted(member.assigned)):
                assert after > before + 1 or not member.assigned[before] & other.assigned.get(after, set()), (
                    f"two owners until {after}"
                )
