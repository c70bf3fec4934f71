"""The size of a group's record beside the batch that kafka-python makes of what the offsets topic holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecordsBuilder

from loadwise.coordinator.groups.offsets_topic import _group_key, _group_value
from loadwise.coordinator.groups.records import GroupRecord, MemberRecord

texts = st.text(st.characters(codec="utf-8"), max_size=90)
members = st.builds(
    MemberRecord,
    member_id=texts,
    instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    session_timeout_ms=st.integers(0, 2**31 - 1),
    rebalance_timeout_ms=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=3000),
    assignment=st.binary(max_size=9000),
)
groups = st.builds(
    GroupRecord,
    group_id=texts,
    generation=st.integers(-1, 2**31 - 1),
    protocol_type=st.none() | texts,
    protocol_name=st.none() | texts,
    leader=st.none() | texts,
    members=st.lists(members, max_size=4),
    since_ms=st.none() | st.integers(0, 2**42),
)


@given(group=groups)
def test_the_size_of_a_group_is_that_of_its_batch(group: GroupRecord) -> None:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1_000_000)
    builder.append(timestamp=0, key=_group_key(group.group_id), value=_group_value(group, 0))
    builder.close()
    assert group.size_bytes == len(builder.buffer())
