"""What members of a weighted group tell each other, and that old and new members read each other."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.protocol.errors import MalformedBytesError
from loadwise.protocol.live_notes import CommitNote, LeaderNotes, MemberNotes, Memory
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

memories = st.builds(
    Memory,
    ages_ms=st.lists(st.integers(0, 3_600_000), max_size=6).map(tuple),
    back_off_ms=st.integers(0, 1_800_000),
    left_ms=st.integers(0, 1_800_000),
    gain=st.floats(0, 100),
)
speeds = st.floats(0, 1e9)
notes = st.builds(
    MemberNotes,
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


def test_a_member_from_before_is_read():
    old = struct.pack(">ihd", 7, 0, 2.5)
    read = CooperativeStickyUserData.decode_with_terms(old)
    assert read.terms == MemberTerms(capacity=2.5, notes=None)


@given(st.text(max_size=20), speeds, memories, st.binary(max_size=9))
def test_leaders_notes_come_back_whatever_newer_ones_append(watcher, speed, memory, more):
    written = LeaderNotes(watcher=watcher.encode("utf-8", "ignore").decode(), learned_per_s=speed, memory=memory)
    assert LeaderNotes.decode(written.encode() + more) == written


@given(notes)
def test_nobody_takes_more_than_a_hundred_bytes(written):
    assert len(MemberTerms(notes=written).encode()) <= 100


@given(st.binary(max_size=60))
def test_bytes_that_are_none_are_refused_and_nothing_else(data):
    for read in (LeaderNotes.decode, CooperativeStickyUserData.decode_with_terms):
        with suppress(MalformedBytesError):
            read(data)


def test_a_version_below_zero_is_refused():
    with pytest.raises(MalformedBytesError, match="version -1"):
        LeaderNotes.decode(struct.pack(">h", -1))


@given(st.text(max_size=249), st.integers(0, 2**53), st.floats(1e-3, 1e12))
def test_a_note_beside_an_offset_comes_back_to_whom_it_is_of(member, at_ms, speed):
    text = CommitNote(member=member, at_ms=at_ms, measured_per_s=speed).encode()
    assert len(text) < 64
    for read in (CommitNote.decode(text, member), CommitNote.decode(text + " more of a newer version", member)):
        assert (read.at_ms, read.measured_per_s) == (at_ms, pytest.approx(speed, rel=1e-5))
    assert CommitNote.decode(text, member + "'") is None


@given(st.one_of(st.none(), st.text(), st.text().map("loadwise:1 ".__add__)))
def test_metadata_of_others_is_no_note(metadata):
    assert CommitNote.decode(metadata, "m") is None
