"""Encode and decode a member's subscription. The strategy decides where owned partitions and terms go.

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

`Traits` define what an algorithm reads.

The stock names use the bytes of Kafka's own assignors, ``subscriptionUserData`` and ``memberData`` of
``StickyAssignor`` and ``CooperativeStickyAssignor``. So a Java leader keeps our members' partitions, and our leader
keeps Java's. Owned partitions are written only once because the broker limits the size of all members together
(``message.max.bytes``, about 1 MB).
"""

from __future__ import annotations

import gc
import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from loadwise.assignor.model import LARGEST, SMALLEST_CAPACITY, Member
from loadwise.assignor.strategy import Strategy
from loadwise.protocol.consumer import NO_GENERATION, Assignment, Subscription
from loadwise.protocol.errors import ProtocolError
from loadwise.protocol.live_notes import MemberNotes
from loadwise.protocol.primitive import Names
from loadwise.protocol.user_data import CooperativeStickyUserData, MemberTerms, StickyUserData

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    """A member as the JoinGroup answer to the leader lists it."""

    id: str
    """Member id."""
    subscription: Subscription
    """Its subscription in JoinGroup."""
    instance_id: str | None = None
    """Group instance id of a static member."""
    size_bytes: int = 0
    """Length of its encoded subscription; 0 if the client does not provide it."""


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
    """Return the subscription of a member that joins. ``owned`` is None before its first assignment.

    ``holds`` is whether a member of a cooperative group keeps its partitions while it joins. It does not if one name
    in its list is eager, as during an upgrade; then it must not claim any.

    ``notes`` are extra data for the leader if the strategy uses loads.

    Partitions of topics that the member no longer subscribes to are left out. The member has revoked them, and a leader
    that saw them as owned would not assign them to others.
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
    """Decode a member's bytes. An unreadable subscription is empty, so that it does not stop the other members."""
    try:
        return Subscription.decode(data, names)
    except ProtocolError as error:
        log.warning("Member %r gets no partitions, because its subscription cannot be read: %s", member_id, error)
        return Subscription()


def read_described(
    listed: Iterable[tuple[str, str | None, bytes, bytes]],
) -> list[tuple[JoinedMember, Mapping[str, Sequence[int]]]]:
    """Decode all members of a DescribeGroups answer: ids, subscription, assignment; and the partitions of each.

    An unreadable assignment is empty.
    """
    listed = list(listed)
    joined = read_joined_members((member, instance_id, data) for member, instance_id, data, _ in listed)
    return [(member, _owned(member.id, given)) for member, (*_, given) in zip(joined, listed, strict=True)]


def _owned(member_id: str, data: bytes) -> Mapping[str, Sequence[int]]:
    try:
        return Assignment.decode(data).partitions
    except ProtocolError as error:
        log.warning("The assignment of member %r cannot be read (%s) and is treated as empty", member_id, error)
        return {}


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's garbage collector from starting, which takes half of the time to make a million lists.

    The whole process pauses with it, so keep it short.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read_joined_members(listed: Iterable[tuple[str, str | None, bytes]]) -> list[JoinedMember]:
    """Decode all members of a JoinGroup answer: member id, group instance id, subscription bytes.

    Uses `read_subscription`. Members with the same topics share one list of them.
    """
    names = Names()
    with _collector_paused():
        return [
            JoinedMember(
                id=member,
                instance_id=instance_id,
                subscription=read_subscription(member, data, names),
                size_bytes=len(data),
            )
            for member, instance_id, data in listed
        ]


def read_members(strategy: Strategy, joined: Iterable[JoinedMember]) -> list[tuple[Member, MemberNotes | None]]:
    """Return the members of a group as input of the algorithms, each with its notes or None; see `read_member`."""
    names = Names()
    with _collector_paused():
        return [_read_member(strategy, member, names) for member in joined]


def read_member(strategy: Strategy, joined: JoinedMember) -> Member:
    """Return a member as input of the algorithms. Unreadable user data is logged and ignored."""
    return _read_member(strategy, joined, Names())[0]


def _read_member(strategy: Strategy, joined: JoinedMember, names: Names) -> tuple[Member, MemberNotes | None]:
    subscription = joined.subscription
    owned: Mapping[str, Sequence[int]] = {}
    generation = NO_GENERATION
    terms: MemberTerms | None = None
    try:
        read = read_user_data(strategy, subscription.user_data, names)
    except ProtocolError as error:
        log.warning("The %s user data of member %r cannot be read (%s) and is ignored", strategy.name, joined.id, error)
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
    """Return a member's capacity, or 1 if it is invalid: its owned partitions still count."""
    if not (sent > 0 and math.isfinite(sent)):
        log.warning("Member %r sent %s as its capacity, which must be finite and above 0; using 1", member_id, sent)
        return 1.0
    return min(max(sent, SMALLEST_CAPACITY), LARGEST)


def read_user_data(
    strategy: Strategy, data: bytes | None, names: Names | None = None
) -> StickyUserData | CooperativeStickyUserData | None:
    """Decode the user data that the strategy's members write. Clients that cannot write null send no bytes instead.

    ``names`` are those of the group's other members. Raises `loadwise.protocol.errors.MalformedBytesError`.
    """
    with_terms = strategy.traits.load
    if not data or not (with_terms or strategy.traits.owned):
        return None
    if strategy.cooperative:
        read = CooperativeStickyUserData.decode_with_terms if with_terms else CooperativeStickyUserData.decode
        return read(data)
    return (StickyUserData.decode_with_terms if with_terms else StickyUserData.decode)(data, names)
