"""Client quotas, as administrators set them (KIP-546). They are kept and described, but throttle no client.

Mirrors Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from loadwise.coordinator.configs.definitions import BadConfigError
from loadwise.coordinator.keeper import NOTHING, Keeper, Place

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_OF_CLIENTS = frozenset({"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"})
_OF_ADDRESSES = frozenset({"connection_creation_rate"})
_TYPES: Mapping[frozenset[str], frozenset[str]] = {
    frozenset({USER}): _OF_CLIENTS,
    frozenset({CLIENT_ID}): _OF_CLIENTS,
    frozenset({USER, CLIENT_ID}): _OF_CLIENTS,
    frozenset({IP}): _OF_ADDRESSES,
}
"""What kinds of entities there are, and the quotas that each can have."""
_LONG, _INT = (float(2**63 - 1), "a LONG"), (float(2**31 - 1), "an INT")
_WHOLE = {"producer_byte_rate": _LONG, "consumer_byte_rate": _LONG, "connection_creation_rate": _INT}
"""Quotas that are whole numbers, with their largest values. These are doubles, as quotas are: Java compares them so."""
_ALMOST_WHOLE = 1e-6


class UnknownEntityError(BadConfigError):
    """A type of entity that there is not."""


Entity: TypeAlias = frozenset[tuple[str, str | None]]
"""Types with names; None stands for all that have no quota of their own."""


class MatchType(IntEnum):
    """How a name is looked for (``DescribeClientQuotasRequest.MATCH_TYPE_*``)."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


class WantedEntity(NamedTuple):
    """One type that an entity must have."""

    type: str
    match: int
    name: str | None

    def matches(self, entity: Mapping[str, str | None]) -> bool:
        """Whether an entity has it."""
        if self.type not in entity:
            return False
        expected = None if self.match == MatchType.DEFAULT else self.name
        return self.match == MatchType.ANY or entity[self.type] == expected


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaRecord:
    """The quotas of an entity, whenever they change (Kafka's ``ClientQuotaRecord``, all of an entity in one)."""

    entity: Sequence[tuple[str, str | None]]
    quotas: Mapping[str, float]

    @property
    def place(self) -> Place:
        """Where it is kept; an entity without a name stands for all others of its type."""
        return ("quota", *(part for kind, name in self.entity for part in (kind, name is not None, name or "")))


class ClientQuotas:
    """What was set, by entity."""

    def __init__(self, keeper: Keeper = NOTHING) -> None:
        self._keeper = keeper
        self._set: dict[Entity, dict[str, float]] = {}

    def alter(
        self, entity: Sequence[tuple[str, str | None]], changes: Mapping[str, float | None], *, validate_only: bool
    ) -> None:
        """Set quotas, or drop those that are None. Raises `BadConfigError` for what there cannot be."""
        allowed = _TYPES.get(frozenset(kind for kind, _ in entity))
        if allowed is None or len({kind for kind, _ in entity}) < len(entity):
            kinds = ", ".join(kind for kind, _ in entity) or "nothing"
            raise BadConfigError(f"a quota cannot be for {kinds}, only for a user, a client-id, both, or an ip")
        for kind, name in entity:
            if name == "":
                raise BadConfigError(f"Empty {kind} not supported")
            if kind == IP and name is not None and not _is_address(name):
                raise BadConfigError(f"{name} is not a valid IP address (names are not looked up here)")
        for key, value in changes.items():
            if value is not None:
                _check(key, value, allowed)
        if validate_only:
            return
        now = self._set.setdefault(frozenset(entity), {})
        for key, value in changes.items():
            now.pop(key, None)
            if value is not None:
                now[key] = value
        record = _record(frozenset(entity), now)
        if now:
            self._keeper.put(record.place, record)
        else:
            del self._set[frozenset(entity)]
            self._keeper.drop(record.place)

    def records(self) -> Iterator[QuotaRecord]:
        """What rebuilds it."""
        for entity, quotas in self._set.items():
            yield _record(entity, quotas)

    def load(self, records: Iterable[QuotaRecord]) -> None:
        """Take these in."""
        for record in records:
            self._set[frozenset((kind, name) for kind, name in record.entity)] = dict(record.quotas)

    def matching(
        self, wanted: Sequence[WantedEntity], *, strict: bool
    ) -> Iterator[tuple[Mapping[str, str | None], Mapping[str, float]]]:
        """The entities that have all that is wanted, and with ``strict`` nothing else, with their quotas."""
        for entity, quotas in self._set.items():
            named = dict(entity)
            is_whole = not strict or set(named) == {each.type for each in wanted}
            if is_whole and all(each.matches(named) for each in wanted):
                yield named, quotas


def _check(key: str, value: float, allowed: frozenset[str]) -> None:
    if key not in allowed:
        raise BadConfigError(f"Invalid configuration key {key}; choose from {', '.join(sorted(allowed))}")
    if value <= 0:
        raise BadConfigError(f"Quota {key} must be greater than 0")
    if key not in _WHOLE:
        return
    largest, kind = _WHOLE[key]
    if value > largest:
        raise BadConfigError(f"Proposed value for {key} is too large for {kind}.")
    if value % 1.0 > _ALMOST_WHOLE:
        raise BadConfigError(f"{key} cannot be a fractional value.")


def _is_address(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _record(entity: Entity, quotas: Mapping[str, float]) -> QuotaRecord:
    ordered = sorted(entity, key=lambda each: each[0])  # each type is there once
    return QuotaRecord(entity=tuple(ordered), quotas=dict(quotas))


def check_filter(wanted: Sequence[WantedEntity]) -> None:
    """Raise `UnknownEntityError` for a type that there is not, `BadConfigError` for what else is wrong.

    The first wrong component counts (``ClientQuotasImage.describe``).
    """
    kinds: set[str] = set()
    for each in wanted:
        if not each.type:
            raise BadConfigError("a component has no entity type")
        if each.type in kinds:
            raise BadConfigError(f"the entity type {each.type} is given twice")
        if each.type not in {USER, CLIENT_ID, IP}:
            raise UnknownEntityError(f"there is no entity type {each.type!r}: use user, client-id or ip")
        if each.match not in MatchType.__members__.values():
            raise BadConfigError(f"there is no match type {each.match}")
        if (each.name is not None) != (each.match == MatchType.EXACT):
            needs = "a" if each.match == MatchType.EXACT else "no"
            raise BadConfigError(f"the match type {MatchType(each.match).name} of {each.type} takes {needs} name")
        kinds.add(each.type)
    if IP in kinds and len(kinds) > 1:
        raise BadConfigError("an ip cannot be combined with another entity type")
