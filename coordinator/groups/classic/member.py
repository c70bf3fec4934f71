"""A member of a classic group: its protocols and its assignment. Mirrors ``ClassicGroupMember``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from loadwise.coordinator.groups.effects import JoinReplyMember
from loadwise.coordinator.groups.events import Join, Protocol
from loadwise.coordinator.groups.records import MemberRecord


class JoinTerms(NamedTuple):
    """The part of a member that each of its joins sets."""

    protocols: Sequence[Protocol]
    rebalance_timeout_ms: int
    session_timeout_ms: int


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    """One member; only its group changes it."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Sequence[Protocol]
    """Its assignment protocols, in its order of preference."""
    assignment: bytes = b""

    @classmethod
    def joining(cls, event: Join, member_id: str) -> ClassicMember:
        """Return a new member."""
        return cls(
            member_id=member_id,
            instance_id=event.instance_id,
            client_id=event.client_id,
            client_host=event.client_host,
            session_timeout_ms=event.session_timeout_ms,
            rebalance_timeout_ms=event.rebalance_timeout_ms,
            protocols=tuple(event.protocols),
        )

    @classmethod
    def replayed(cls, record: MemberRecord, protocol_name: str) -> ClassicMember:
        """Return a member from its record, with only the chosen protocol."""
        return cls(
            member_id=record.member_id,
            instance_id=record.instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            session_timeout_ms=record.session_timeout_ms,
            rebalance_timeout_ms=record.rebalance_timeout_ms,
            protocols=(Protocol(protocol_name, record.subscription),),
            assignment=record.assignment,
        )

    @property
    def size_bytes(self) -> int:
        """Return the bytes of its subscriptions, one for each protocol, and of its assignment."""
        return len(self.assignment) + sum(len(metadata) for _, metadata in self.protocols)

    @property
    def terms(self) -> JoinTerms:
        """Return what `update` changes."""
        return JoinTerms(self.protocols, self.rebalance_timeout_ms, self.session_timeout_ms)

    @terms.setter
    def terms(self, terms: JoinTerms) -> None:
        self.protocols, self.rebalance_timeout_ms, self.session_timeout_ms = terms

    def update(self, event: Join) -> None:
        """Take in what a member that joins again brings."""
        self.terms = JoinTerms(tuple(event.protocols), event.rebalance_timeout_ms, event.session_timeout_ms)

    def metadata(self, protocol_name: str) -> bytes:
        """Return its subscription under one of its protocols. Raises KeyError for another."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise KeyError(protocol_name)

    def offers(self, protocol_name: str) -> bool:
        """Return whether it supports this protocol."""
        return any(name == protocol_name for name, _ in self.protocols)

    def vote(self, candidates: Collection[str]) -> str:
        """Return the candidate that it prefers; it supports at least one."""
        return next(name for name, _ in self.protocols if name in candidates)

    def seen_by_leader(self, protocol_name: str) -> JoinReplyMember:
        """Return the member as the leader gets it."""
        return JoinReplyMember(self.member_id, self.instance_id, self.metadata(protocol_name))

    def record(self, protocol_name: str) -> MemberRecord:
        """Return the member's record."""
        return MemberRecord(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=self.assignment,
        )
