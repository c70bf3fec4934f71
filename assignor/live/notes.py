"""Reports of members, from the notes that they send when they join and beside committed offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from loadwise.assignor.live.events import Said
from loadwise.assignor.live.watched import Watched
from loadwise.assignor.model import LARGEST, Member
from loadwise.protocol.live_notes import CommitNote, Compared, MemberNotes, Memory, author, checksum, is_note


class CommitNotes:
    """The newest note of each partition, to recognise new ones: a restarted member has another clock."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, int], str] = {}

    def only(self, topics: Collection[str]) -> None:
        """Drop the notes of all other topics."""
        self._read = {partition: note for partition, note in self._read.items() if partition[0] in topics}

    def news(self, metadata: Mapping[tuple[str, int], str], watched: Watched) -> dict[str, Said]:
        """Return members' reports from new metadata of partitions that they own."""
        news = {at: note for at, note in metadata.items() if note and note != self._read.get(at) and is_note(note)}
        self._read |= news
        newest: dict[str, CommitNote] = {}
        for partition, written in news.items():
            owner = watched.owner_of(partition)
            note = None if owner is None else CommitNote.decode(written, owner)
            if owner is not None and note is not None and (owner not in newest or note.at_ms > newest[owner].at_ms):
                newest[owner] = note
        return {name: said(watched.group.topics, note, written_ms=note.at_ms) for name, note in newest.items()}


def compared(metadata: Iterable[str], members: Sequence[str]) -> Compared | None:
    """Return the leader's estimate in a group's commits; None without one. A member's newest note counts."""
    names: dict[int | None, str] = {checksum(member): member for member in members}
    newest: dict[str, CommitNote] = {}
    for written in metadata:
        member = names.get(author(written))
        note = None if member is None else CommitNote.decode(written, member)
        if note is not None and (note.member not in newest or note.at_ms > newest[note.member].at_ms):
            newest[note.member] = note
    return next((note.compared for note in newest.values() if note.compared is not None), None)


def said(topics: Sequence[str], notes: MemberNotes | CommitNote, written_ms: int | None = None) -> Said:
    """Return the report in a member's notes, for these topics."""
    each_s = {topic: notes.took_s[key] for topic in topics if (key := checksum(topic)) in notes.took_s}
    learned_per_s = speed(notes.learned_per_s) if isinstance(notes, MemberNotes) else 0.0
    return Said(per_s=speed(notes.measured_per_s), each_s=each_s, learned_per_s=learned_per_s, written_ms=written_ms)


def stated(member: Member, notes: MemberNotes | None) -> float:
    """Return the capacity that the member's user set, or 0."""
    # A member of an older version sends no notes: its default is 1, so its user set any other value.
    given = member.capacity != 1.0 if notes is None else notes.capacity_given
    return member.capacity if given else 0.0


def speed(per_s: float) -> float:
    """Return the speed if it is valid, or else 0."""
    return per_s if 0 < per_s <= LARGEST else 0.0


def newest(memories: Collection[Memory]) -> Memory:
    """Return the memory with the latest rebalance."""
    return max(memories, key=lambda memory: -memory.ages_ms[-1] if memory.ages_ms else -(2**31), default=Memory())
