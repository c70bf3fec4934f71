"""What a stream as a whole has lost and gained, whichever of its members hears of it first."""

from __future__ import annotations

import pytest

pytest.importorskip("kafka", reason="needs kafka-python, which joins the group")

from hypothesis import given
from hypothesis import strategies as st
from kafka.structs import TopicPartition as Partition

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster import group_members
from loadwise.spark_source.cluster.group_members import GroupMembers
from loadwise.spark_source.options.client_config import translate
from loadwise.spark_source.options.membership import GroupMember
from loadwise.spark_source.options.topics import Subscribe

MEMBERS, PARTITIONS = 3, 4
CONFIG = translate({"bootstrap.servers": "a:1"})
GROUP = GroupMember(group="g", members=MEMBERS, strategies=("weighted",), capacity=None, settings={"group.id": "g"})


class Scripted:
    """Stands in for a `Membership`: owns what its script tells at each poll, and tells its listener."""

    joining = False

    def __init__(self, listener, _plan):
        self.listener, self.owned, self.script = listener, frozenset(), []

    def subscribe(self, topics):
        """Nothing to be asked."""

    def poll(self, _timeout_s):
        if self.script:
            before, self.owned = self.owned, self.script.pop(0)
            self.listener.lost(before - self.owned)
            self.listener.assigned(self.owned - before)

    def close(self):
        """Nothing to be left."""


def of(numbers):
    return frozenset(Partition("t", number) for number in numbers)


def scripted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_members, "Membership", Scripted)
        return GroupMembers(CONFIG, GROUP, Subscribe(("t",)))


def test_a_member_that_hears_late_that_it_was_put_out_takes_nothing_from_another_one():
    members = scripted()
    first, second, _ = (member.membership for member in members._members)
    second.script = [of([1])]
    assert members.take_part(1.0).gained == {TopicPartition("t", 1)}
    first.script, second.script = [of([1])], [of([])]
    changes = members.take_part(1.0)
    assert changes.lost == changes.gained == {TopicPartition("t", 1)}
    assert members.take_part(1.0) == group_members.Changes(frozenset(), frozenset())


@given(
    st.lists(st.lists(st.sampled_from([*range(MEMBERS), None]), min_size=PARTITIONS, max_size=PARTITIONS), max_size=5)
)
def test_what_the_stream_holds_is_what_its_members_own(rounds):
    members, held = scripted(), set()
    for owners in rounds:
        for number, member in enumerate(members._members):
            member.membership.script = [of(place for place, owner in enumerate(owners) if owner == number)]
        changes = members.take_part(1.0)
        held = (held - changes.lost) | changes.gained
        assert held == {TopicPartition("t", place) for place, owner in enumerate(owners) if owner is not None}
