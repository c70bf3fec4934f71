"""The sticky assignors' user data against Java's bytes, kafka-python's assignor and aiokafka's."""

import contextlib
from unittest.mock import patch

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyAssignorUserDataV1
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from loadwise.protocol.errors import ProtocolError
from loadwise.protocol.live_notes import MemberNotes, Memory, Price
from loadwise.protocol.primitive import Reader
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

# subscriptionUserData() of kafka-clients 4.3.1: StickyAssignor after t-0, t-1 at generation 1, and t-2 as v0 (the
# same without the generation); CooperativeStickyAssignor at generation 7 and before any assignment.
JAVA_STICKY = bytes.fromhex("0000000100017400000002000000000000000100000001")
JAVA_STICKY_V0 = bytes.fromhex("000000010001740000000100000002")
JAVA_COOPERATIVE = bytes.fromhex("00000007")
JAVA_COOPERATIVE_FIRST = bytes.fromhex("ffffffff")

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
partitions = st.dictionaries(names, st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=5))
generations = st.integers(-1, 2**31 - 1)
terms = st.builds(MemberTerms, capacity=st.floats(min_value=1e-300, max_value=1e300))


def test_java_s_bytes():
    assert StickyUserData(owned={"t": [0, 1]}, generation=1).encode() == JAVA_STICKY
    assert StickyUserData.decode(JAVA_STICKY) == StickyUserData(owned={"t": [0, 1]}, generation=1)
    assert StickyUserData.decode(JAVA_STICKY_V0) == StickyUserData(owned={"t": [2]}, generation=-1)
    assert CooperativeStickyUserData(generation=7).encode() == JAVA_COOPERATIVE
    assert CooperativeStickyUserData().encode() == JAVA_COOPERATIVE_FIRST
    assert CooperativeStickyUserData.decode(JAVA_COOPERATIVE).generation == 7


@given(partitions, generations)
def test_the_other_clients_forms_are_read(owned, generation):
    expected = StickyUserData(owned=owned, generation=generation)
    kafka_python = bytes(StickyAssignorUserData(list(owned.items()), generation).encode())
    assert kafka_python[:2] == b"\0\1", "this is the form that Java cannot read"
    assert StickyUserData.decode(kafka_python) == expected
    aiokafka = StickyAssignorUserDataV1(list(owned.items()), generation).encode()
    assert StickyUserData.decode(aiokafka) == expected
    assert expected.encode() == aiokafka


@given(partitions, generations, terms)
def test_the_terms_of_a_weighted_member_follow_bytes_that_others_can_read(owned, generation, said):
    sticky = StickyUserData(owned=owned, generation=generation, terms=said)
    assert StickyUserData.decode_with_terms(sticky.encode()) == sticky
    aiokafka = StickyAssignorUserDataV1.decode(sticky.encode())
    assert (dict(aiokafka.previous_assignment), aiokafka.generation) == (owned, generation)

    cooperative = CooperativeStickyUserData(generation=generation, terms=said)
    assert CooperativeStickyUserData.decode_with_terms(cooperative.encode()) == cooperative
    assert CooperativeStickyUserData.decode(cooperative.encode()).generation == generation


def test_the_terms_have_a_version_and_room_to_grow():
    data = JAVA_STICKY + bytes.fromhex("0000 4000000000000000")
    assert StickyUserData(owned={"t": [0, 1]}, generation=1, terms=MemberTerms(capacity=2.0)).encode() == data
    notes = MemberNotes(measured_per_s=900.0, memory=Memory(price=Price()))
    newer = JAVA_STICKY + bytes.fromhex("0005 4000000000000000") + notes.encode() + b"more"
    assert StickyUserData.decode_with_terms(newer).terms == MemberTerms(capacity=2.0, notes=notes)
    assert StickyUserData.decode_with_terms(JAVA_STICKY).terms is None


def test_trailing_bytes_are_ignored_as_java_does():
    assert StickyUserData.decode(JAVA_STICKY + b"tail").owned == {"t": [0, 1]}


@given(st.binary(max_size=60))
def test_random_bytes_are_a_value_or_an_error_of_ours(data):
    for kind in (StickyUserData, CooperativeStickyUserData):
        for decode in (kind.decode, kind.decode_with_terms):
            with contextlib.suppress(ProtocolError):
                decode(data)


@given(partitions, generations)
def test_sound_partitions_are_read_the_fast_way(owned, generation):
    """Only what is odd is read again with care, which takes several times as long."""
    data = StickyUserData(owned=owned, generation=generation).encode()
    with patch.object(Reader, "_odd_topic_partitions", side_effect=AssertionError("read with care")):
        assert StickyUserData.decode(data).owned == owned
