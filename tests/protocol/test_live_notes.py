"""What members of a weighted group tell each other, and that old and new members read each other."""

import struct
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.live_notes import CommitNote, Compared, LeaderNotes, MemberNotes, Memory, Price
from loadwise.protocol.primitive import Reader
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

memories = st.builds(
    Memory,
    ages_ms=st.lists(st.integers(0, 3_600_000), max_size=6).map(tuple),
    price=st.builds(Price, st.floats(0, 1e6), st.floats(1, 64)),
)
speeds = st.floats(0, 1e9)
took = st.dictionaries(st.integers(0, 2**32 - 1), st.floats(2**-20, 2**13, width=32), max_size=8)
notes = st.builds(
    MemberNotes,
    took_s=took,
    capacity_given=st.booleans(),
    off=st.booleans(),
    measured_per_s=speeds,
    learned_per_s=speeds,
    memory=memories,
)


@given(notes, st.floats(0.1, 10))
def test_members_notes_come_back(written, capacity):
    terms = MemberTerms(capacity=capacity, notes=written)
    eager = StickyUserData(owned={"t": [1, 2]}, generation=3, terms=terms)
    assert StickyUserData.decode_with_terms(eager.encode()) == eager
    cooperative = CooperativeStickyUserData(generation=3, terms=terms)
    assert CooperativeStickyUserData.decode_with_terms(cooperative.encode()) == cooperative


@given(notes, st.floats(0.1, 10))
def test_a_member_from_before_reads_the_capacity(written, capacity):
    """Version 0 reads: int16 version, float64 capacity, and nothing of what follows."""
    _, read = struct.unpack_from(">hd", MemberTerms(capacity=capacity, notes=written).encode())
    assert read == capacity


def test_what_is_not_said_is_not_known():
    """0 records/s stand for an unknown speed, and 1 for a member that is as fast as the others."""
    assert MemberTerms().capacity == 1
    assert (MemberNotes().measured_per_s, MemberNotes().learned_per_s, LeaderNotes().learned_per_s) == (0, 0, 0)
    assert (MemberNotes().capacity_given, MemberNotes().off) == (False, False)


def test_a_member_from_before_is_read():
    old = struct.pack(">ihd", 7, 0, 2.5)
    read = CooperativeStickyUserData.decode_with_terms(old)
    assert read.terms == MemberTerms(capacity=2.5, notes=None)


@given(st.text(max_size=20), speeds, memories, st.binary(max_size=9))
def test_leaders_notes_come_back_whatever_newer_ones_append(watcher, speed, memory, more):
    written = LeaderNotes(watcher=watcher.encode("utf-8", "ignore").decode(), learned_per_s=speed, memory=memory)
    assert LeaderNotes.decode(written.encode() + more) == written


@given(notes)
def test_nobody_takes_more_than_its_budget(written):
    assert len(MemberTerms(notes=written).encode()) <= 165
    assert len(LeaderNotes(memory=written.memory).encode()) <= 120


def unpriced(data):
    """Notes whose flags say that no price follows."""
    return struct.pack(">h", struct.unpack_from(">h", data)[0] & 3) + data[2:]


def test_of_many_topics_the_first_are_told():
    took_s = dict.fromkeys(range(100), 1.0)
    read = MemberNotes.read(Reader(MemberNotes(took_s=took_s).encode()))
    assert list(read.took_s) == list(range(8))


@given(notes)
def test_a_member_from_before_the_times_is_read(written):
    """Its notes end with the ages of its memory."""
    data = replace(written, took_s={}).encode()
    without = replace(written, took_s={}, memory=replace(written.memory, price=None))
    assert MemberNotes.read(Reader(unpriced(data)[:-18])) == without


@given(notes, speeds)
def test_members_from_before_the_price_are_read(written, speed):
    old = replace(written.memory, price=None)
    assert MemberNotes.read(Reader(unpriced(written.encode())[:-16])) == replace(written, memory=old)
    leader = LeaderNotes(learned_per_s=speed, memory=written.memory)
    assert LeaderNotes.decode(bytes(2) + leader.encode()[2:-16]) == replace(leader, memory=old)


@pytest.mark.parametrize(("spent_s", "times"), [(-1.0, 1.0), (float("nan"), 1.0), (0.0, 0.5), (0.0, float("inf"))])
def test_a_price_that_cannot_be_is_refused(spent_s, times):
    data = LeaderNotes(memory=Memory(price=Price(spent_s, times))).encode()
    with pytest.raises(MalformedBytesError, match="a price of"):
        LeaderNotes.decode(data)


def test_more_topics_than_there_can_be_are_refused():
    data = MemberNotes().encode()[:-18] + struct.pack(">h", 9)
    with pytest.raises(MalformedBytesError, match="9 topics"):
        MemberNotes.read(Reader(data))


@given(st.binary(max_size=60))
def test_bytes_that_are_none_are_refused_and_nothing_else(data):
    for read in (LeaderNotes.decode, CooperativeStickyUserData.decode_with_terms):
        with suppress(MalformedBytesError):
            read(data)


def test_a_version_below_zero_is_refused():
    with pytest.raises(MalformedBytesError, match="version -1"):
        LeaderNotes.decode(struct.pack(">h", -1))


seconds = st.floats(-1e9, 1e9)
compared = st.none() | st.builds(Compared, seconds, seconds)


@given(st.text(max_size=249), st.integers(0, 2**53), st.floats(1e-3, 1e12), took, compared)
def test_a_note_beside_an_offset_comes_back_to_whom_it_is_of(member, at_ms, speed, took_s, compared):
    note = CommitNote(member=member, at_ms=at_ms, measured_per_s=speed, took_s=took_s, compared=compared)
    text = note.encode()
    assert len(text) < 230
    for read in (CommitNote.decode(text, member), CommitNote.decode(text + " more of a newer version", member)):
        assert (read.at_ms, read.measured_per_s) == (at_ms, pytest.approx(speed, rel=1e-5))
        assert read.took_s == pytest.approx(took_s, rel=0.01)
        assert read.compared == (None if compared is None else pytest.approx(compared, rel=0.01))
    assert CommitNote.decode(text, member + "'") is None


def test_a_member_from_before_reads_the_speed():
    """It takes the two words behind the checksum, and nothing of what follows."""
    text = CommitNote(member="m", at_ms=5, measured_per_s=30.0, took_s={1: 0.1}).encode()
    assert text.split(" ")[2:4] == ["5", "30"]
    with_more = CommitNote(member="m", at_ms=5, measured_per_s=30.0, took_s={1: 0.1}, compared=Compared(2.0, -1.0))
    assert [each for each in with_more.encode().split(" ")[4:] if "=" in each] == ["1=0.1"]
    assert CommitNote.decode(text.replace("1=0.1", "1=x"), "m") is None


@given(st.one_of(st.none(), st.text(), st.text().map("loadwise:1 ".__add__)))
def test_metadata_of_others_is_no_note(metadata):
    assert CommitNote.decode(metadata, "m") is None
