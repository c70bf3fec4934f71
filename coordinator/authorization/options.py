"""What clients may do, as a user of the coordinator sets it: `Authorization`, a part of ``Security``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadwise.coordinator.authorization.acls import Acl
from loadwise.coordinator.authorization.authorizer import Authorizer
from loadwise.coordinator.errors import BadSecurityError
from loadwise.coordinator.keeper import NOTHING, Keeper


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorization:
    """ACLs, and who needs none; administrators can change the ACLs while the coordinator runs.

    The names in brackets are those of Kafka's settings. Raises `BadSecurityError` for what cannot be.
    """

    acls: Sequence[Acl] = ()
    """The ACLs at the start."""
    super_users: Sequence[str] = ()
    """Who may do everything, as ``User:admin`` (super.users)."""
    allow_everyone_if_no_acl_found: bool = False
    """Whether everybody may do everything to what no ACL is about (allow.everyone.if.no.acl.found)."""

    def __post_init__(self) -> None:
        for name in self.super_users:
            if ":" not in name:
                raise BadSecurityError(f"the super user {name!r} has no principal type: write {f'User:{name}'!r}")

    def authorizer(self, keeper: Keeper = NOTHING) -> Authorizer:
        """The authorizer that begins with these ACLs, and tells a keeper how they change."""
        return Authorizer(
            self.acls,
            keeper,
            super_users=self.super_users,
            allow_everyone_if_no_acl_found=self.allow_everyone_if_no_acl_found,
        )
