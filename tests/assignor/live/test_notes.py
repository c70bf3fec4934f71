"""Reports of members, from the notes beside their commits."""

import math
from types import SimpleNamespace

import pytest

from loadwise.assignor.live.notes import CommitNotes, compared, newest, said, speed, stated
from loadwise.assignor.model import LARGEST, Member
from loadwise.protocol.live_notes import CommitNote, Compared, MemberNotes, Memory, checksum

OWNERS = {("t", 0): "a", ("t", 1): "a", ("t", 2): "b"}
WATCHED = SimpleNamespace(owner_of=OWNERS.get, group=SimpleNamespace(topics=("t", "u")))


def note(member, at_ms, per_s=100.0):
    return CommitNote(member=member, at_ms=at_ms, measured_per_s=per_s).encode()


def news(notes, **metadata):
    read = {("t", int(number[1:])): each for number, each in metadata.items()}
    return {name: each.per_s for name, each in notes.news(read, WATCHED).items()}


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"p0": note("a", 1, 1.0), "p1": note("a", 2, 2.0), "p2": note("b", 1, 3.0)}, {"a": 2.0, "b": 3.0}),
        ({"p0": note("a", 2, 2.0), "p1": note("a", 1, 1.0)}, {"a": 2.0}),  # the newest note of a member
        ({"p0": note("b", 1)}, {}),  # of the member that owned it before
        ({"p3": note("a", 1)}, {}),  # of a partition without an owner
        ({"p0": "", "p1": "of a user"}, {}),
    ],
)
def test_the_newest_note_of_a_member_on_its_own_partitions_counts(metadata, found):
    assert news(CommitNotes(), **metadata) == found


def test_a_note_is_new_once_unless_its_topic_was_dropped():
    notes, first = CommitNotes(), note("a", 1)
    assert news(notes, p0=first) == {"a": 100.0}
    assert news(notes, p0=first) == {}
    assert news(notes, p0=note("a", 0, 50.0)) == {"a": 50.0}, "a restarted member has another clock"
    notes.only(["t"])
    assert news(notes, p0=note("a", 0, 50.0)) == {}
    notes.only(["u"])
    assert news(notes, p0=note("a", 0, 50.0)) == {"a": 50.0}


def test_a_report_has_the_times_of_known_topics():
    took_s = {checksum("t"): 0.5, checksum("gone"): 9.0}
    report = said(["t", "u"], MemberNotes(measured_per_s=10.0, learned_per_s=20.0, took_s=took_s))
    assert (report.per_s, report.learned_per_s, report.each_s, report.written_ms) == (10.0, 20.0, {"t": 0.5}, None)
    beside_commit = CommitNote(member="a", at_ms=7, measured_per_s=10.0, took_s=took_s)
    [report] = CommitNotes().news({("t", 0): beside_commit.encode()}, WATCHED).values()
    assert (report.per_s, report.learned_per_s, report.each_s, report.written_ms) == (10.0, 0.0, {"t": 0.5}, 7)


@pytest.mark.parametrize(
    ("per_s", "used"),
    [(0.5, 0.5), (LARGEST, LARGEST), (0.0, 0), (-1.0, 0), (math.nan, 0), (math.inf, 0), (2 * LARGEST, 0)],
)
def test_a_speed_that_cannot_be_counts_as_unknown(per_s, used):
    assert speed(per_s) == used


@pytest.mark.parametrize(
    ("capacity", "notes", "given"),
    [
        (2.0, MemberNotes(capacity_given=True), 2.0),
        (1.0, MemberNotes(capacity_given=True), 1.0),
        (2.0, MemberNotes(capacity_given=False), 0.0),
        (2.0, None, 2.0),  # of an older version
        (1.0, None, 0.0),
    ],
)
def test_a_capacity_counts_if_the_user_has_set_it(capacity, notes, given):
    assert stated(Member(id="a", topics=[], capacity=capacity), notes) == given


def test_the_memory_with_the_latest_rebalance_is_the_newest():
    old, new, empty = Memory(ages_ms=(9000, 100)), Memory(ages_ms=(8000, 99)), Memory()
    assert newest([empty, old, new]) == newest([new, old, empty]) == new
    assert newest([]) == empty
    assert newest([empty, Memory(ages_ms=(2**31 - 1,))]).ages_ms


def estimate(member, at_ms, *values):
    return CommitNote(member=member, at_ms=at_ms, measured_per_s=1.0, compared=Compared(*values)).encode()


def test_the_estimate_is_that_of_the_member_that_leads_now():
    was_leader = [estimate("a", 5, 9.0, 9.0), note("a", 7)]
    assert compared([*was_leader, estimate("b", 3, 0.5, 4.0), "of another client", note("c", 9)], "abc") == (0.5, 4)
    assert compared(was_leader, "abc") is None
    assert compared([estimate("gone", 5, 1.0, 1.0)], "abc") is None
