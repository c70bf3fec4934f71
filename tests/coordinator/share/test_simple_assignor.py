"""The assignor of share groups, by what KIP-932 asks of it: everything is read, evenly, and little moves."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator.groups.consumer_records import Partitions
from loadwise.coordinator.share.simple_assignor import assign
from loadwise.coordinator.turns import whole

TOPICS = [UUID(int=number) for number in range(1, 4)]
NAMES = [f"m{number}" for number in range(9)]

members = st.lists(st.sampled_from(NAMES), unique=True, min_size=1)
partitions = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})
subscriptions = st.frozensets(st.sampled_from(TOPICS))
owned = st.dictionaries(
    st.sampled_from(NAMES),
    st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 9), min_size=1)),
)


def count(assigned: Partitions) -> int:
    return sum(map(len, assigned.values()))


def readers(assigned: dict[str, Partitions], topic: UUID, number: int) -> int:
    return sum(number in each.get(topic, ()) for each in assigned.values())


@given(members=members, wanted=subscriptions.filter(bool), partitions=partitions, owned=owned)
def test_members_that_want_the_same_share_everything_evenly(
    members: list[str], wanted: frozenset[UUID], partitions: dict[UUID, int], owned: dict[str, Partitions]
) -> None:
    assigned = whole(assign(dict.fromkeys(members, wanted), partitions, owned))
    pool = [(topic, number) for topic in wanted for number in range(partitions[topic])]
    assert set(assigned) == set(members)
    if not pool:
        assert all(count(each) == 0 for each in assigned.values())
        return
    each_read = [readers(assigned, *partition) for partition in pool]
    most = -(-len(members) // len(pool))
    assert all(1 <= number <= most for number in each_read)
    fair = most * len(pool) / len(members)
    assert all(count(each) <= fair + 1 for each in assigned.values())
    assert sum(map(count, assigned.values())) == sum(each_read), "nothing else is assigned"


@given(wanted=st.dictionaries(st.sampled_from(NAMES), subscriptions, min_size=1), partitions=partitions, owned=owned)
def test_nobody_reads_what_it_does_not_want_and_everything_wanted_is_read(
    wanted: dict[str, frozenset[UUID]], partitions: dict[UUID, int], owned: dict[str, Partitions]
) -> None:
    assigned = whole(assign(wanted, partitions, owned))
    for member, theirs in assigned.items():
        assert set(theirs) <= wanted[member]
        assert all(number < partitions[topic] for topic, numbers in theirs.items() for number in numbers)
    for topic in frozenset().union(*wanted.values()):
        assert all(readers(assigned, topic, number) for number in range(partitions[topic]))


@given(members=members, wanted=subscriptions.filter(bool), partitions=partitions)
def test_nothing_moves_without_a_reason(
    members: list[str], wanted: frozenset[UUID], partitions: dict[UUID, int]
) -> None:
    everybody = dict.fromkeys(members, wanted)
    first = whole(assign(everybody, partitions, {}))
    assert whole(assign(everybody, partitions, first)) == first


def test_a_member_that_comes_takes_only_its_share() -> None:
    topic = TOPICS[0]
    before = whole(assign(dict.fromkeys("ab", frozenset({topic})), {topic: 6}, {}))
    after = whole(assign(dict.fromkeys("abc", frozenset({topic})), {topic: 6}, before))
    assert [count(each) for each in after.values()] == [2, 2, 2]
    assert all(after[member][topic] <= before[member][topic] for member in "ab")
