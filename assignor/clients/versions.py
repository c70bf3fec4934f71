"""Versions of a client whose private parts our adapters were tested with.

A client that is older cannot be served. One that is newer may have changed what is private, so its consumers are left
as they are: the assignor works, and what depends on private parts is missing until somebody has tried that version.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

log = logging.getLogger(__name__)

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TriedVersions:
    """A client, the version that is installed, and the oldest and newest that were tested."""

    client: str
    """The client's name on the package index."""
    installed: str
    """Its version here."""
    oldest: Version
    newest: Version

    @property
    def includes_installed(self) -> bool:
        """Whether the installed version is among those that were tested."""
        return self.oldest <= _parsed(self.installed) <= self.newest

    @property
    def range(self) -> str:
        """The versions that were tested, in words."""
        return f"{_text(self.oldest)} to {_text(self.newest)}"

    def warn(self, missing: str) -> None:
        """Log that the installed version was never tried, and what is ``missing`` for that reason."""
        log.warning(
            "%s %s was never tried with loadwise, %s were: %s",
            *(self.client, self.installed, self.range, missing),
        )


def _parsed(version: str) -> Version:
    """The first three numbers of a version; a pre-release counts as what it precedes."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch


def _text(version: Version) -> str:
    return ".".join(map(str, version))
