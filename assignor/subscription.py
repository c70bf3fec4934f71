"""A member's subscription on the wire, written and read. The strategy decides which bytes carry what.

================================ ======================================= ==================================
the algorithm reads              owned partitions and their generation   user data
================================ ======================================= ==================================
neither owned nor load           not sent                                null
owned, eager                     in the user data                        `StickyUserData`, null at first
owned, cooperative               in the subscription                     `CooperativeStickyUserData`
owned and load, eager            in the user data                        `StickyUserData` with terms
owned and load, cooperative      in the subscription                     `CooperativeStickyUserData` with terms
load alone, eager                not sent                                `StickyUserData` with terms
================================ ======================================= ==================================

What an algorithm reads is told by its `Traits`.

The stock names have the bytes of Kafka's own assignors, ``subscriptionUserData`` and ``memberData`` of
``StickyAssignor`` and ``CooperativeStickyAssignor``, so that a Java leader keeps our members' partitions and ours keeps
Java's. Owned partitions are written once, in either place, because the broker has a limit for all members' bytes
together (``message.max.bytes``, about 1 MB).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from loadwise.assignor.model import LARGEST, SMALLEST_CAPACITY, Member
from loadwise.assignor.strategy import Strategy
from loadwise.collector import collector_paused
from loadwise.protocol.consumer import NO_GENERATION, Assignment, Subscription
from loadwise.protocol.errors import ProtocolError
from loadwise.protocol.live_notes import MemberNotes
from loadwise.protocol.primitive import Names
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member as JoinGroup lists it to the leader."""

    id: str
    """Member id."""
    subscription: Subscription
    """What it sent in JoinGroup."""
    instance_id: str | None = None
    """Group instance id of a static member."""
    size_bytes: int = 0
    """Length of its subscription on the wire; 0 where the client does not tell."""


def write_subscription(
    strategy: Strategy,
    topics: Collection[str],
    *,
    owned: Mapping[str, Sequence[int]] | None,
    generation: int,
    capacity: float,
    rack: str | None,
    holds: bool = True,
    notes: MemberNotes | None = None,
) -> Subscription:
    """Answer the subscription that a member joins with. ``owned`` is None before its first assignment.

    ``holds`` tells a member of a cooperative group whether it keeps what it owns while it joins. It does not where one
    name in its list is eager, as in the middle of an upgrade; then it must not write that it holds anything.

    ``notes`` is what a strategy that takes loads tells its leader beside the capacity.

    Partitions of topics that it no longer subscribes to are left out. The member has given them up, and a leader that
    took them for owned would keep them from everybody else.
    """
    held = {topic: partitions for topic, partitions in (owned or {}).items() if topic in topics}
    terms = MemberTerms(capacity=capacity, notes=notes) if strategy.traits.load else None
    user_data: bytes | None = None
    if strategy.cooperative:
        user_data = CooperativeStickyUserData(generation=generation, terms=terms).encode()
    elif terms is not None or (strategy.traits.owned and owned is not None):
        user_data = StickyUserData(
            owned=held if strategy.traits.owned else {}, generation=generation, terms=terms
        ).encode()
    return Subscription(
        topics=list(topics),
        user_data=user_data,
        owned=held if strategy.cooperative and holds else {},
        generation=generation,
        rack=rack,
    )


def read_subscription(member_id: str, data: bytes, names: Names | None = None) -> Subscription:
    """Read a member's bytes; one that cannot be read subscribes to nothing, so that it cannot stop the others."""
    try:
        return Subscription.decode(data, names)
    except ProtocolError as error:
        log.warning("The subscription of member %r cannot be read (%s): it gets no partitions", member_id, error)
        return Subscription()


def read_described(
    listed: Iterable[tuple[str, str | None, bytes, bytes]],
) -> list[tuple[JoinedMember, Mapping[str, Sequence[int]]]]:
    """Read all members as DescribeGroups lists them: ids, subscription and assignment bytes; and what each owns.

    An assignment that cannot be read is one of nothing.
    """
    listed = list(listed)
    joined = read_joined_members((member, instance_id, data) for member, instance_id, data, _ in listed)
    return [(member, _owned(member.id, given)) for member, (*_, given) in zip(joined, listed, strict=True)]


def _owned(member_id: str, data: bytes) -> Mapping[str, Sequence[int]]:
    try:
        return Assignment.decode(data).partitions
    except ProtocolError as error:
        log.warning("The assignment of member %r cannot be read (%s): it counts as one of nothing", member_id, error)
        return {}


def read_joined_members(listed: Iterable[tuple[str, str | None, bytes]]) -> list[JoinedMember]:
    """Read all members as JoinGroup lists them: member id, group instance id, subscription bytes.

    `read_subscription` reads each. Members that name the same topics share one list of them.
    """
    names = Names()
    with collector_paused():
        return [
            JoinedMember(
                id=member,
                instance_id=instance_id,
                subscription=read_subscription(member, data, names),
                size_bytes=len(data),
            )
            for member, instance_id, data in listed
        ]


def read_members(strategy: Strategy, joined: Iterable[JoinedMember]) -> list[Member]:
    """Answer the members of a group as the algorithms take them; see `read_member`."""
    return [member for member, _ in read_members_and_notes(strategy, joined)]


def read_members_and_notes(
    strategy: Strategy, joined: Iterable[JoinedMember]
) -> list[tuple[Member, MemberNotes | None]]:
    """Answer what `read_members` does, each member with its notes; None where it sent none."""
    names = Names()
    with collector_paused():
        return [_read_member(strategy, member, names) for member in joined]


def read_member(strategy: Strategy, joined: JoinedMember) -> Member:
    """Answer a member as the algorithms take it. User data that cannot be read is logged, and counts as none."""
    return _read_member(strategy, joined, Names())[0]


def _read_member(strategy: Strategy, joined: JoinedMember, names: Names) -> tuple[Member, MemberNotes | None]:
    subscription = joined.subscription
    owned: Mapping[str, Sequence[int]] = {}
    generation = NO_GENERATION
    terms: MemberTerms | None = None
    try:
        read = read_user_data(strategy, subscription.user_data, names)
    except ProtocolError as error:
        log.warning("The %s user data of member %r cannot be read (%s): ignored", strategy.name, joined.id, error)
        read = None
    if read is not None:
        generation, terms = read.generation, read.terms
    if strategy.cooperative:
        owned = subscription.owned
        if subscription.generation != NO_GENERATION:
            generation = subscription.generation
    elif isinstance(read, StickyUserData):
        owned = read.owned
    if owned and not owned.keys() <= (topics := frozenset(subscription.topics)):
        owned = {topic: partitions for topic, partitions in owned.items() if topic in topics}
    member = Member(
        id=joined.id,
        topics=subscription.topics,
        owned=owned,
        generation=generation,
        instance_id=joined.instance_id,
        rack=subscription.rack,
        capacity=1.0 if terms is None else _capacity(joined.id, terms.capacity),
    )
    return member, None if terms is None else terms.notes


def _capacity(member_id: str, sent: float) -> float:
    """The capacity that a member has sent, or 1 where it is none: its partitions are to be believed all the same."""
    if not (sent > 0 and math.isfinite(sent)):
        log.warning(
            "Member %r has sent %s as its capacity, which must be finite and above 0: 1 is used", member_id, sent
        )
        return 1.0
    return min(max(sent, SMALLEST_CAPACITY), LARGEST)


def read_user_data(
    strategy: Strategy, data: bytes | None, names: Names | None = None
) -> StickyUserData | CooperativeStickyUserData | None:
    """Read what the strategy's members write. Clients that cannot write null send no bytes instead.

    ``names`` are those of the group's other members. Raises `loadwise.protocol.errors.MalformedBytesError`.
    """
    with_terms = strategy.traits.load
    if not data or not (with_terms or strategy.traits.owned):
        return None
    if strategy.cooperative:
        read = CooperativeStickyUserData.decode_with_terms if with_terms else CooperativeStickyUserData.decode
        return read(data)
    return (StickyUserData.decode_with_terms if with_terms else StickyUserData.decode)(data, names)
