"""Files that are named on the command line."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

from loadwise.version import __version__


def read_text(path: Path, refusal: type[Exception]) -> str:
    """The text of a file without its byte order mark. Raises ``refusal`` where it cannot be read, or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise refusal(f"there is no file {path}") from error
    except OSError as error:
        raise refusal(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise refusal(f"{path}, byte {error.start}: not UTF-8; save the file as UTF-8") from error


def read_settings(command_config: Path | None) -> dict[str, object]:
    """The client's settings in ``--command-config``. Raises `BadConnectionError`."""
    if command_config is None:
        return {}
    # Imported here, because `loadwise coordinator` starts without it.
    from loadwise.running_group.command_config import client_settings
    from loadwise.running_group.errors import BadConnectionError

    return client_settings(read_text(command_config, BadConnectionError), str(command_config))


def write_page(path: Path, render: Callable[[str], str], refusal: type[Exception]) -> None:
    """Write the page of ``--html``; ``render`` gets its footer. Raises ``refusal`` where it cannot be written."""
    footer = f"loadwise {__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    try:
        # JSON lets a name have half of a surrogate pair, which UTF-8 has no bytes for: it is shown as JSON writes it.
        path.write_text(render(footer), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise refusal(f"--html {path} cannot be written: {error.strerror}") from error
