"""The client versions whose private parts the adapters were tested with.

Older clients are refused when a folder of `loadwise.assignor.clients` is imported. A newer client may have changed its
private parts, so its consumers are not modified. The assignor works, but features that depend on private parts are
missing until that version is tested.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from loadwise.assignor.errors import MissingClientError
from loadwise.installation import is_installed, pip_install

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
            "%s %s was not tested with loadwise (tested: %s): %s",
            *(self.client, self.installed, self.range, missing),
        )


def require(client: str, package: str, *, oldest: Version, extra: str | None = None) -> str:
    """Return a client's installed version. Call this before anything of its ``package`` is imported.

    ``extra`` is loadwise's extra that installs it, if that has another name. Raises `MissingClientError` if it is not
    installed or too old.
    """
    remedy = pip_install(extra or client)
    try:
        installed = version(client) if is_installed(package) else None
    except PackageNotFoundError:
        installed = None
    if installed is None:
        raise MissingClientError(f"{client} is not installed; get it with: {remedy}")
    if _parsed(installed) < oldest:
        raise MissingClientError(
            f"{client} {installed} is installed, but loadwise needs {_text(oldest)} or later; get it with: {remedy}"
        )
    return installed


def _parsed(version: str) -> Version:
    """Return the first three numbers of a version; a pre-release counts as its release."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[:3]]
    major, minor, patch = [*numbers, 0, 0, 0][:3]
    return major, minor, patch


def _text(version: Version) -> str:
    return ".".join(map(str, version))
