"""How an optional part of this package is installed from where the package itself came.

An error that names a missing part gives a command that works: from the checkout, the wheel or the repository that pip
recorded in ``direct_url.json`` (PEP 610), and from the package index only where the package came from there.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

NAME = "loadwise"


def is_installed(library: str) -> bool:
    """Return whether a library can be imported, without importing it."""
    try:
        return find_spec(library) is not None
    except ImportError:
        return False


def pip_install(extra: str) -> str:
    """Answer the pip command that adds one extra, such as ``pip install --editable '/home/me/loadwise[spark]'``."""
    # Imported only when something is missing: the coordinator starts for every test of a suite.
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        recorded = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        # The package runs from a checkout without being installed, with ``src`` on Python's path.
        return _command(str(Path(__file__).resolve().parents[2]), extra, editable=True)
    return command_for(recorded, extra)


def command_for(recorded: str | None, extra: str) -> str:
    """Answer the command for the text of ``direct_url.json``; None stands for an installation from an index."""
    if recorded is None:
        return _command(NAME, extra)
    import json  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415
    from urllib.request import url2pathname  # noqa: PLC0415

    origin = json.loads(recorded)
    url = origin["url"]
    if (vcs := origin.get("vcs_info")) is not None:
        return f"pip install '{NAME}[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    if (folder := origin.get("dir_info")) is not None:
        return _command(url2pathname(urlsplit(url).path), extra, editable=folder.get("editable", False))
    return f"pip install '{NAME}[{extra}] @ {url}'"


def _command(what: str, extra: str, *, editable: bool = False) -> str:
    return f"pip install {'--editable ' if editable else ''}'{what}[{extra}]'"
