"""A static leader that is restarted within its session: no rebalance follows, and it watches the group's load again."""

import uuid

import pytest
from live_group import LiveGroup

pytestmark = [pytest.mark.kafka, pytest.mark.live]

CASES = {"kafka-python": ("kafka-python", "weighted"), "aiokafka": ("aiokafka", "cooperative-weighted")}


def restart_the_leader(broker, client, assignor):
    """Below JoinGroup v9, which neither client has, the broker answers that its former self leads."""
    name = f"static-{uuid.uuid4().hex}"
    rates = [60.0] * 12
    with LiveGroup(broker, name, name, assignor=assignor, rates=rates, session_timeout_ms=60_000) as group:
        members = {f"static-{number}": group.join(client, instance=f"static-{number}") for number in range(3)}
        group.wait_until_at_rest(3, why="joining")
        group.wait_until(lambda: any(each.leads for each in group.alive), why="a leader")
        instance, former = next((instance, each) for instance, each in members.items() if each.leads)
        generation, owned = former.generation, former.owned
        former.kill()
        again = group.join(client, instance=instance)
        group.wait_until(lambda: group.settled(3) and again.leads, why="resuming")
        assert (again.generation, again.owned) == (generation, owned)
        other = next(each for each in group.alive if each is not again)
        hot = group.overload(other, 1350)
        group.wait_until(lambda: not hot.issubset(other.owned) and group.settled(3), why="a rebalance for the load")
        assert any("asking for a rebalance" in line for line in again.log)


@pytest.mark.parametrize("client", CASES)
def test_a_restarted_static_leader_watches_on(side_by_side, client):
    side_by_side(restart_the_leader, CASES)[client].result()
