"""Files that are named on the command line, read as text."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path, refusal: type[Exception]) -> str:
    """The text of a file. Raises ``refusal`` where it cannot be read, or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise refusal(f"there is no file {path}") from error
    except OSError as error:
        raise refusal(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise refusal(f"{path}, byte {error.start}: not UTF-8; save the file as UTF-8") from error
