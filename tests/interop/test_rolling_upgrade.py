"""The double bounce: a running group changes its strategy, member by member, while records come in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from topics import WAIT_S

pytestmark = pytest.mark.kafka

PARTITIONS = 6
SESSION_MS = 60_000
HERE = Path(__file__).resolve().parent
CLIENTS = ("kafka-python", "aiokafka", "kafka-python")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("range", "weighted"),
        ("weighted", "range"),
        ("range", "cooperative-weighted"),
        ("cooperative-weighted", "range"),
    ],
)
def test_a_group_changes_its_strategy_with_two_rolling_restarts(  # noqa: PLR0917 (fixtures)
    topic, join, eventually, production, before, after
):
    """Each member is replaced twice: by one with both names, then by one with the new name alone."""
    group = f"group-of-{topic}"
    everybody = []

    def joins(client, strategy):
        everybody.append(join(client, group, topic, strategy, SESSION_MS))
        return everybody[-1]

    def settle(members):
        def settled():
            owned = [partition for member in members for partition in member.owned]
            generations = {member.generation for member in members}
            return len(generations) == 1 and sorted(owned) == list(range(PARTITIONS)) and all(m.owned for m in members)

        eventually(settled, everybody)

    members = [joins(client, before) for client in CLIENTS]
    settle(members)
    for strategies in (f"{after},{before}", after):
        for index, client in enumerate(CLIENTS):
            members[index].leave()
            members[index] = joins(client, strategies)
            settle(members)
    assert {member.strategy for member in members} == {after}

    produced = production.stop()
    assert produced
    eventually(lambda: produced <= set().union(*(member.processed for member in everybody)), everybody)
    for generation in set().union(*(member.assigned for member in everybody)):
        given = [partition for member in everybody for partition in member.assigned.get(generation, ())]
        assert len(given) == len(set(given)), f"two owners in generation {generation}: {everybody}"


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_a_member_without_a_name_in_common_is_told_what_the_group_uses_and_what_to_do(
    broker, topic, join, eventually, client
):
    group = f"group-of-{topic}"
    first = join("kafka-python", group, topic, "range", SESSION_MS)
    eventually(lambda: len(first.owned) == PARTITIONS, [first])
    command = [sys.executable, str(HERE / "group_member.py"), client, broker, group, topic, "weighted", str(SESSION_MS)]
    with subprocess.Popen(  # its input stays open: it ends by itself
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as stranger:
        try:
            assert stranger.wait(WAIT_S) != 0
        finally:
            stranger.kill()
        told = stranger.stderr.read()
    for words in (
        f"group '{group}' uses the assignor 'range', which this member does not offer; it offers weighted",
        "restart its members one by one with both, assignor=['weighted', 'range']",
        "docs/upgrading.md",
    ):
        assert words in told
