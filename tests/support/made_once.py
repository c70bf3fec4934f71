"""What tests fetch or compile, such as jars, is made once, and kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where two processes may make the same
    fcntl = None


def made_once(name: str, content: bytes, make: Callable[[Path], None]) -> Path:
    """The folder that ``make`` fills, one for each name and content of what it is made from.

    It must not depend on where it is, since it is moved when it is complete. Other processes wait for the one that
    makes it. Where ``make`` raises, nothing is kept.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "loadwise"
    folder = cache / f"{name}-{hashlib.sha256(content).hexdigest()[:8]}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f".{folder.name}.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as place:
                made = Path(place, "made")
                made.mkdir()
                make(made)
                try:
                    made.rename(folder)
                except OSError:
                    if not folder.is_dir():  # else another process was faster
                        raise
    return folder


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        if fcntl:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
