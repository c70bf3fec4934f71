"""The users of a cluster: passwords for PLAIN, and SCRAM credentials.

Administrators can change the SCRAM credentials. Mirrors Kafka's ``ScramFormatter`` (RFC 5802 without SASLprep: a
password is its UTF-8).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from loadwise.coordinator.keeper import NOTHING, Keeper, Place

SCRAM_HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash function of each of Kafka's SCRAM mechanisms."""
LEAST_ITERATIONS = 4096
"""Minimum number of iterations; credentials that are created here use it too, as in Kafka's tools."""
MOST_ITERATIONS = 16384


class ScramCredential(NamedTuple):
    """What a server stores instead of a password (RFC 5802, section 3)."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of(cls, mechanism: str, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
        """Return the credential of a password that the client salted."""
        algorithm = SCRAM_HASHES[mechanism]
        client_key = hmac.digest(salted_password, b"Client Key", algorithm)
        server_key = hmac.digest(salted_password, b"Server Key", algorithm)
        return cls(salt, hashlib.new(algorithm, client_key).digest(), server_key, iterations)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramRecord:
    """A change of a user's credential by an administrator (``UserScramCredentialRecord``)."""

    name: str
    mechanism: str
    credential: ScramCredential | None = field(repr=False)
    """None: it was deleted, even if it was there from the start."""

    @property
    def place(self) -> Place:
        """Return the key under which it is stored."""
        return ("scram", self.name, self.mechanism)


class Users:
    """The users that may log in. No ``repr`` and no log shows secrets."""

    def __init__(self, passwords: Mapping[str, str], mechanisms: Iterable[str], keeper: Keeper = NOTHING) -> None:
        self._keeper = keeper
        self._changed: dict[tuple[str, str], ScramRecord] = {}
        self._passwords = dict(passwords)
        # Salting takes milliseconds, so a password is salted on first use.
        self._scram: dict[tuple[str, str], ScramCredential | str] = {
            (name, mechanism): password
            for name, password in passwords.items()
            for mechanism in mechanisms
            if mechanism in SCRAM_HASHES
        }

    def has_password(self, name: str, password: str) -> bool:
        """Return whether this is the user's password, for PLAIN."""
        known = self._passwords.get(name)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, name: str, mechanism: str) -> ScramCredential | None:
        """Return a user's credential for a mechanism; None without one."""
        found = self._scram.get((name, mechanism))
        if isinstance(found, str):
            found = self._scram[name, mechanism] = _salted(mechanism, found)
        return found

    def scram_iterations(self, name: str) -> dict[str, int]:
        """Return a user's mechanisms, with their iterations."""
        found = ((mechanism, self.scram(name, mechanism)) for mechanism in SCRAM_HASHES)
        return {mechanism: credential.iterations for mechanism, credential in found if credential is not None}

    @property
    def scram_names(self) -> list[str]:
        """Return all SCRAM users, each once."""
        return sorted({name for name, _ in self._scram})

    def has_scram(self, name: str, mechanism: str) -> bool:
        """Return whether a user has a credential for a mechanism."""
        return (name, mechanism) in self._scram

    def put_scram(self, name: str, mechanism: str, credential: ScramCredential) -> None:
        """Set or replace a user's credential."""
        self._change(ScramRecord(name=name, mechanism=mechanism, credential=credential))

    def delete_scram(self, name: str, mechanism: str) -> None:
        """Delete a user's credential, which must exist."""
        self._change(ScramRecord(name=name, mechanism=mechanism, credential=None))

    def records(self) -> Iterator[ScramRecord]:
        """Return the administrators' changes, which rebuild the users from the initial passwords."""
        yield from self._changed.values()

    def load(self, records: Iterable[ScramRecord]) -> None:
        """Apply these changes."""
        for record in records:
            self._take(record)

    def _change(self, record: ScramRecord) -> None:
        self._take(record)
        self._keeper.put(record.place, record)

    def _take(self, record: ScramRecord) -> None:
        key = (record.name, record.mechanism)
        self._changed[key] = record
        if record.credential is None:
            self._scram.pop(key, None)
        else:
            self._scram[key] = record.credential


def _salted(mechanism: str, password: str) -> ScramCredential:
    salt = secrets.token_bytes(32)
    salted = hashlib.pbkdf2_hmac(SCRAM_HASHES[mechanism], password.encode(), salt, LEAST_ITERATIONS)
    return ScramCredential.of(mechanism, salt, salted, LEAST_ITERATIONS)
