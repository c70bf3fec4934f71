"""Members of older versions in one group with members of this one: bytes that those versions wrote, recorded.

The group of two had twelve partitions of the topic t when they were written. In the newer one, a member was measured to
process 900 records/s and the other one 120, and a rebalance had been asked for.
"""

import pytest
from test_leader import PARTITIONS, Cluster

from loadwise.assignor.live.settings import LiveSettings
from loadwise.assignor.load.lag import LagLoad
from loadwise.assignor.participant import Participant
from loadwise.assignor.subscription import JoinedMember
from loadwise.protocol.consumer import Assignment, Subscription
from loadwise.protocol.live_notes import Memory

# Subscriptions, by version and strategy, of the members a and b in the eighth generation.
BEFORE_LIVE = {
    "weighted": {
        "a": "0003 00000001 000174 00000031 00000001 000174 00000006 00000000 00000002 00000004 00000006 00000008"
        " 0000000a 00000008 0000 3ff0000000000000 00000000 00000008 ffff",
        "b": "0003 00000001 000174 00000031 00000001 000174 00000006 00000001 00000003 00000005 00000007 00000009"
        " 0000000b 00000008 0000 3ff0000000000000 00000000 00000008 ffff",
    },
    "cooperative-weighted": {
        "a": "0003 00000001 000174 0000000e 00000008 0000 3ff0000000000000 00000001 000174 00000006 00000000 00000002"
        " 00000004 00000006 00000008 0000000a 00000008 ffff",
        "b": "0003 00000001 000174 0000000e 00000008 0000 3ff0000000000000 00000001 000174 00000006 00000001 00000003"
        " 00000005 00000007 00000009 0000000b 00000008 ffff",
    },
}
BEFORE_COSTS = {
    "weighted": {
        "a": "0003 00000001 000174 0000006d 00000001 000174 0000000b 00000000 00000001 00000002 00000003 00000004"
        " 00000005 00000007 00000008 00000009 0000000a 0000000b 00000008 0001 3ff0000000000000 0000 408c200000000000"
        " 408c200000000000 0001 00002af8 00000000 00000000 3fe3333333333333 00000000 00000008 ffff",
        "b": "0003 00000001 000174 00000045 00000001 000174 00000001 00000006 00000008 0001 3ff0000000000000 0000"
        " 405e000000000000 405e000000000000 0001 00002af8 00000000 00000000 3fe3333333333333 00000000 00000008 ffff",
    },
    "cooperative-weighted": {
        "a": "0003 00000001 000174 00000036 00000008 0001 3ff0000000000000 0000 408c200000000000 408c200000000000 0001"
        " 00002af8 00000000 00000000 3fe3333333333333 00000001 000174 0000000b 00000000 00000001 00000002 00000003"
        " 00000004 00000005 00000007 00000008 00000009 0000000a 0000000b 00000008 ffff",
        "b": "0003 00000001 000174 00000036 00000008 0001 3ff0000000000000 0000 405e000000000000 405e000000000000 0001"
        " 00002af8 00000000 00000000 3fe3333333333333 00000001 000174 00000001 00000006 00000008 ffff",
    },
}
# What their leader gave b.
ASSIGNED_BEFORE_LIVE = "0003 00000001 000174 00000002 00000001 00000003 ffffffff"
ASSIGNED_BEFORE_COSTS = (
    "0003 00000001 000174 00000001 00000006 00000023 0000 000161 405e000000000000 0001 000003e8 00000000 00000000"
    " 3fe3333333333333"
)


def member(strategy, name):
    made = Participant(strategy)
    made.lead_by(LagLoad(auto_offset_reset="earliest", clock=lambda: 1000.0), LiveSettings(), slack_s=1.0)
    made.leader._clock = lambda: 1000.0
    made.leader.name = name
    return made


def joined_with(newcomer, recorded):
    subscriptions = {name: bytes.fromhex(data) for name, data in recorded.items()}
    subscriptions["c"] = newcomer.subscription(["t"])
    return [JoinedMember(id=name, subscription=Subscription.decode(data)) for name, data in subscriptions.items()]


@pytest.mark.parametrize("strategy", ["weighted", "cooperative-weighted"])
def test_a_member_leads_those_from_before_the_load_was_watched(strategy):
    """They keep what they own as far as that is even. One that tells no notes does not switch the watch off."""
    leader = member(strategy, "c")
    answer = leader.assign(joined_with(leader, BEFORE_LIVE[strategy]), Cluster())
    given = {name: Assignment.decode(data) for name, data in answer.items()}
    owned = {name: set(each.partitions.get("t", ())) for name, each in given.items()}
    assert owned["a"] < set(range(0, PARTITIONS, 2))
    assert owned["b"] < set(range(1, PARTITIONS, 2))
    assert (len(owned["a"]), len(owned["b"])) == (4, 4)
    # In the first round of a cooperative rebalance the newcomer has nothing: the others have to give it up.
    assert len(owned["c"]) == (4 if strategy == "weighted" else 0)
    leader.assigned(given["c"].partitions, 9, user_data=given["c"].user_data)
    assert leader.leader.leads
    assert not leader.leader._watch.off


@pytest.mark.parametrize("strategy", ["weighted", "cooperative-weighted"])
def test_a_member_leads_those_from_before_costs_were_learned(strategy):
    """What they have measured is believed, and what they were to remember is remembered."""
    leader = member(strategy, "c")
    leader.assign(joined_with(leader, BEFORE_COSTS[strategy]), Cluster())
    watch = leader.leader._watch
    assert watch.knowledge.estimates.known_of(["a", "b", "c"]) == {"a": 900.0, "b": 120.0, "c": 0.0}
    assert watch.restraint.memory(1_000_000).ages_ms == (11_000,)


def test_a_member_follows_a_leader_from_before_the_load_was_watched():
    follower = member("weighted", "b")
    given = Assignment.decode(bytes.fromhex(ASSIGNED_BEFORE_LIVE))
    follower.assigned(given.partitions, 8, user_data=given.user_data)
    assert not follower.leader.leads
    assert not follower.leader.to_resume
    assert follower.subscription(["t"])


def test_a_member_remembers_what_a_leader_from_before_costs_were_learned_tells_it():
    follower = member("weighted", "b")
    given = Assignment.decode(bytes.fromhex(ASSIGNED_BEFORE_COSTS))
    follower.assigned(given.partitions, 8, user_data=given.user_data)
    assert not follower.leader.leads
    notes = follower.leader.joining(capacity_given=False)
    assert notes.learned_per_s == 120.0
    assert notes.memory == Memory(ages_ms=(1000,))
