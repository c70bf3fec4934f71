"""The client versions whose private parts the adapters were tested with.

Older clients are not supported. A newer client may have changed its private parts, so its consumers are not modified.
The assignor works, but features that depend on private parts are missing until that version is tested.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

log = logging.getLogger(__name__)

Version = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class TriedVersions:
    """A client, its installed version, and the oldest and newest tested versions."""

    client: str
    """The client's name on the package index."""
    installed: str
    """Its installed version."""
    oldest: Version
    newest: Version

    @property
    def includes_installed(self) -> bool:
        """Whether the installed version was tested."""
        return self.oldest <= _parsed(self.installed) <= self.newest

    @property
    def range(self) -> str:
        """The tested versions in words."""
        return f"{_text(self.oldest)} to {_text(self.newest)}"

    def warn(self, missing: str) -> None:
        """Log that the installed version was not tested, and what is ``missing`` therefore."""
        log.warning(
            "%s %s was not tested with loadwise, %s were: %s",
            *(self.client, self.installed, self.range, missing),
        )


def _parsed(version: str) -> Version:
    """Return the first three numbers of a version; a pre-release counts as its release."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch


def _text(version: Version) -> str:
    return ".".join(map(str, version))
