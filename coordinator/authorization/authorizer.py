"""Decides whether a principal may do something to a resource. Mirrors Kafka's ``StandardAuthorizer``.

A super user may do everything. For others, ACLs count that match the resource: by its name, by a prefix of its name, or
by the name ``*``. One that denies outweighs all that allow. A resource without any ACL is closed, unless
``allow_everyone_if_no_acl_found`` is set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadwise.coordinator.authorization.acls import EVERYBODY, WILDCARD, Acl, AclFilter, PatternType, Permission
from loadwise.coordinator.calls.rights import OPERATIONS, Client, Operation, ResourceType
from loadwise.coordinator.keeper import NOTHING, Keeper, Place

_IMPLIED_BY: Mapping[Operation, frozenset[Operation]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Whoever is allowed one of these is allowed the operation too. Denying one of these denies nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclRecord:
    """What an administrator made of an ACL (``AccessControlEntryRecord``)."""

    acl: Acl
    is_there: bool
    """False: it was deleted, though the cluster began with it."""

    @property
    def place(self) -> Place:
        """Where it is kept."""
        return ("acl", *self.acl)


class Authorizer:
    """Decides by ACLs, which can be changed."""

    def __init__(
        self,
        acls: Sequence[Acl] = (),
        keeper: Keeper = NOTHING,
        *,
        super_users: Iterable[str] = (),
        allow_everyone_if_no_acl_found: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allows_without_acl = allow_everyone_if_no_acl_found
        self._acls: dict[Acl, None] = {}  # in the order in which they came
        self._by_pattern: dict[tuple[ResourceType, PatternType, str], list[Acl]] = {}
        self._prefix_lengths: Counter[int] = Counter()
        """How many patterns there are of each length that prefixes have: no others are looked for in a name."""
        self._keeper = keeper
        self._changed: dict[Place, AclRecord] = {}
        self._first = frozenset(acls)
        for acl in acls:
            self._put(acl)

    # ---- decisions ----

    def allows(self, who: Client, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether a client may do this to the resource of this type and name."""
        if who.principal in self._super_users:
            return True
        allowed = found = False
        for acl in self._about(resource_type, name):
            found = True
            if not _is_for(acl, who):
                continue
            if acl.permission is Permission.DENY:
                if acl.operation in (operation, Operation.ALL):
                    return False
            elif acl.operation in (operation, Operation.ALL) or acl.operation in _IMPLIED_BY.get(operation, ()):
                allowed = True
        return allowed if found else self._allows_without_acl

    def allows_some(self, who: Client, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there may be a resource of this type that a client may do this to.

        Mirrors ``Authorizer.authorizeByResourceType``: an ACL that allows counts unless others deny all that it allows.
        """
        if self.allows(who, operation, resource_type, "hardcode"):  # Kafka asks about this name
            return True
        about = [
            acl
            for acl in self._acls
            if acl.resource_type is resource_type and acl.operation in (operation, Operation.ALL) and _is_for(acl, who)
        ]
        denied = [acl for acl in about if acl.permission is Permission.DENY]
        if any(_is_about_all(acl) for acl in denied):
            return False
        return any(
            _is_about_all(acl) or not any(_denies_all_of(other, acl) for other in denied)
            for acl in about
            if acl.permission is Permission.ALLOW
        )

    def operations(self, who: Client, resource_type: ResourceType, name: str) -> frozenset[Operation]:
        """All that a client may do to a resource."""
        return frozenset(each for each in OPERATIONS[resource_type] if self.allows(who, each, resource_type, name))

    # ---- the ACLs ----

    def add(self, acl: Acl) -> None:
        """Add an ACL; one that is there already stays as it is."""
        if acl not in self._acls:
            self._change(AclRecord(acl=acl, is_there=True))

    def remove(self, acl: Acl) -> None:
        """Remove an ACL, which there must be."""
        self._change(AclRecord(acl=acl, is_there=False))

    def records(self) -> Iterator[AclRecord]:
        """What administrators changed: with the ACLs of the beginning it rebuilds the ACLs."""
        yield from self._changed.values()

    def load(self, records: Iterable[AclRecord]) -> None:
        """Take these in."""
        for record in records:
            self._take(record)

    @property
    def size(self) -> int:
        """How many ACLs there are."""
        return len(self._acls)

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """All ACLs that a filter lets through."""
        return [acl for acl in self._acls if wanted.matches(acl)]

    def _change(self, record: AclRecord) -> None:
        self._take(record)
        if record.place in self._changed:
            self._keeper.put(record.place, record)
        else:
            self._keeper.drop(record.place)

    def _take(self, record: AclRecord) -> None:
        (self._put if record.is_there else self._drop)(record.acl)
        if record.is_there == (record.acl in self._first):
            self._changed.pop(record.place, None)  # it is as it was at the beginning
        else:
            self._changed[record.place] = record

    def _put(self, acl: Acl) -> None:
        if acl not in self._acls:
            self._acls[acl] = None
            pattern = (acl.resource_type, acl.pattern_type, acl.name)
            if pattern not in self._by_pattern:
                self._by_pattern[pattern] = []
                if acl.pattern_type is PatternType.PREFIXED:
                    self._prefix_lengths[len(acl.name)] += 1
            self._by_pattern[pattern].append(acl)

    def _drop(self, acl: Acl) -> None:
        if acl in self._acls:
            del self._acls[acl]
            pattern = (acl.resource_type, acl.pattern_type, acl.name)
            self._by_pattern[pattern].remove(acl)
            if not self._by_pattern[pattern]:
                del self._by_pattern[pattern]
                if acl.pattern_type is PatternType.PREFIXED:
                    self._prefix_lengths[len(acl.name)] -= 1
                    self._prefix_lengths += Counter()  # without those that are at 0

    def _about(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        by_pattern = self._by_pattern
        yield from by_pattern.get((resource_type, PatternType.LITERAL, name), ())
        if name != WILDCARD:
            yield from by_pattern.get((resource_type, PatternType.LITERAL, WILDCARD), ())
        for length in self._prefix_lengths:
            if length <= len(name):
                yield from by_pattern.get((resource_type, PatternType.PREFIXED, name[:length]), ())


def _is_for(acl: Acl, who: Client) -> bool:
    return acl.principal in (who.principal, EVERYBODY) and acl.host in (who.host, WILDCARD)


def _is_about_all(acl: Acl) -> bool:
    return acl.pattern_type is PatternType.LITERAL and acl.name == WILDCARD


def _denies_all_of(denying: Acl, allowing: Acl) -> bool:
    if denying.pattern_type is PatternType.PREFIXED:
        return allowing.name.startswith(denying.name)
    return allowing.pattern_type is PatternType.LITERAL and allowing.name == denying.name
