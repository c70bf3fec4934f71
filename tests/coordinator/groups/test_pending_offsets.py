"""Offsets of transactions that have not ended: each goes with its own record, and takes no other along."""

from __future__ import annotations

import itertools

import pytest
from commits import commit
from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator.cluster.brokers import coordinator_partition
from loadwise.coordinator.groups.events import Committer
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition, size_bytes_of
from loadwise.coordinator.groups.pending_offsets import PendingOffsets
from loadwise.coordinator.groups.records import PendingOffsetRecord, PendingOffsetTombstone
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.coordinator.turns import whole
from loadwise.protocol.error_codes import ErrorCode

A, B = Partition("t", 0), Partition("t", 1)


def written(producer_id: int, group_id: str, partition: Partition, offset: int) -> PendingOffsetRecord:
    return PendingOffsetRecord(
        group_id=group_id,
        producer_id=producer_id,
        topic=partition.topic,
        partition=partition.number,
        committed=CommittedOffset(offset, -1, ""),
    )


def ended(producer_id: int, group_id: str, partition: Partition) -> PendingOffsetTombstone:
    return PendingOffsetTombstone(
        group_id=group_id, producer_id=producer_id, topic=partition.topic, partition=partition.number
    )


def held(pending: PendingOffsets, producer_id: int, group_id: str) -> dict[Partition, CommittedOffset | None]:
    return {each: found.committed for each, found in pending.of_producer(producer_id, group_id).items()}


def test_the_end_of_one_offset_leaves_the_others() -> None:
    pending = PendingOffsets()
    for place in ((1, "g", A), (1, "g", B), (1, "h", A), (2, "g", A)):
        pending.apply(written(*place, 5))
    assert (pending.of("g"), pending.group_ids(1)) == ({A, B}, {"g", "h"})
    pending.apply(ended(1, "g", A))
    assert held(pending, 1, "g") == {B: CommittedOffset(5, -1, "")}
    assert (pending.of("g"), pending.group_ids(1)) == ({A, B}, {"g", "h"})
    pending.apply(ended(1, "g", B))
    assert (pending.of("g"), pending.group_ids(1)) == ({A}, {"h"})
    pending.apply(ended(1, "h", A))
    pending.apply(ended(2, "g", A))
    assert (pending.of("g"), pending.group_ids(1), pending.group_ids(2)) == (set(), set(), set())


def test_a_later_commit_takes_the_place_of_those_that_wait() -> None:
    pending = PendingOffsets()
    for place in ((1, "g", A), (1, "g", B), (2, "g", A), (1, "h", A)):
        pending.apply(written(*place, 5))
    superseded = list(pending.superseded("g", [A]))
    assert [(each.producer_id, each.group_id, each.partition) for each in superseded] == [(1, "g", 0), (2, "g", 0)]
    for each in superseded:
        pending.apply(each)
    assert held(pending, 1, "g") == {A: None, B: CommittedOffset(5, -1, "")}
    assert list(pending.superseded("g", [A])) == []
    assert held(pending, 1, "h") == {A: CommittedOffset(5, -1, "")}
    pending.forget("g")
    assert (pending.of("g"), pending.of("h")) == (set(), {A})


@pytest.mark.parametrize("committed", [True, False])
def test_the_end_of_a_transaction_does_not_undo_a_later_commit(committed: bool) -> None:
    """As in Kafka's ``OffsetMetadataManager``: only of the partition that was committed since."""
    groups = Groups(GroupLimits())
    in_transaction = Committer(producer_id=1)
    commit(groups, "g", in_transaction, {A: CommittedOffset(5, -1, ""), B: CommittedOffset(6, -1, "")})
    commit(groups, "g", Committer(), {A: CommittedOffset(9, -1, "")})
    whole(groups.end_transaction(1, coordinator_partition("g"), committed=committed))
    found = {partition: each.offset for partition, each in groups.offsets.of("g").items()}
    assert found == {A: 9} | ({B: 6} if committed else {})


@pytest.mark.parametrize("ends", [(1, 2), (2, 1)])
def test_of_two_transactions_the_later_commit_counts(ends: tuple[int, int]) -> None:
    """Whichever ends first, as Kafka compares where both commits stand in the log."""
    groups = Groups(GroupLimits())
    for producer_id in (1, 2):
        commit(groups, "g", Committer(producer_id=producer_id), {A: CommittedOffset(producer_id, -1, "")})
    for producer_id in ends:
        whole(groups.end_transaction(producer_id, coordinator_partition("g"), committed=True))
    assert groups.offsets.of("g")[A].offset == 2


def test_an_offset_that_is_deleted_while_its_transaction_ends_does_not_come_back() -> None:
    groups = Groups(GroupLimits())
    commit(groups, "g", Committer(producer_id=1), {each: CommittedOffset(5, -1, "") for each in (A, B)})
    ending = groups.end_transaction(1, coordinator_partition("g"), committed=True)
    next(ending)
    groups.forget_offsets("g", [A, B])
    whole(ending)
    assert groups.offsets.of("g") == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["stage", "supersede", "end", "delete group"]),
            st.integers(1, 2), st.sampled_from("gh"), st.sampled_from([A, B]), st.integers(0, 40),
        )
    )
)  # fmt: skip
def test_their_bytes_are_counted(steps: list[tuple[str, int, str, Partition, int]]) -> None:
    pending = PendingOffsets()
    for what, producer_id, group_id, partition, length in steps:
        its = {
            "group_id": group_id,
            "producer_id": producer_id,
            "topic": partition.topic,
            "partition": partition.number,
        }
        if what == "delete group":
            pending.forget(group_id)
        elif what == "end":
            pending.apply(PendingOffsetTombstone(**its))
        else:
            staged = None if what == "supersede" else CommittedOffset(5, -1, "m" * length)
            pending.apply(PendingOffsetRecord(**its, committed=staged))
        every = [held(pending, *of) for of in itertools.product((1, 2), "gh")]
        assert pending.size_bytes == sum(size_bytes_of(*each) for of in every for each in of.items())


def test_staged_offsets_are_limited_by_their_bytes_and_not_by_what_they_could_have() -> None:
    groups = Groups(GroupLimits(max_offset_bytes=100_000))
    many = {Partition("t", number): CommittedOffset(5, -1, "") for number in range(900)}
    assert commit(groups, "g", Committer(producer_id=1), many) is ErrorCode.NONE
    assert commit(groups, "h", Committer(), {A: CommittedOffset(5, -1, "")}) is ErrorCode.NONE
    more = {Partition("t", number): CommittedOffset(5, -1, "") for number in range(900, 1900)}
    assert commit(groups, "g", Committer(producer_id=1), more) is ErrorCode.INVALID_COMMIT_OFFSET_SIZE
