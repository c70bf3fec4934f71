"""Files of a data directory that are damaged at random: it is refused, or has all that was acknowledged."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from unittest.mock import patch
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator import DataDirError
from loadwise.coordinator.keeper import KeptBatch, LogName
from loadwise.coordinator.storage import directory
from loadwise.coordinator.storage.directory import Directory
from loadwise.coordinator.storage.files import ACKNOWLEDGED_NAME, FILE_NAME, size_of

LOG = f"{FILE_NAME}-wal"
NAMES = (FILE_NAME, LOG, ACKNOWLEDGED_NAME)
NAME = LogName(UUID(int=1), 0)
PAGE_BYTES = 4096
Files: TypeAlias = dict[str, bytes]


@dataclass(frozen=True)
class Damage:
    """What happens to one file."""

    name: str
    kind: str
    where: float
    """How far into the file, from 0 to 1."""
    mask: int

    def done_to(self, files: Files, earlier: Files, other: Files) -> Files:
        """The files after it."""
        data = files.get(self.name, b"")
        at = int(self.where * (len(data) - 1)) if data else 0
        match self.kind:
            case "missing":
                return {name: each for name, each in files.items() if name != self.name}
            case "empty":
                data = b""
            case "short":
                data = data[:at]
            case "flipped":
                data = data[:at] + bytes([data[at] ^ self.mask]) + data[at + 1 :] if data else data
            case "zeroed":
                data = data[:at] + bytes(len(data[at : at + PAGE_BYTES])) + data[at + PAGE_BYTES :]
            case "earlier":
                data = earlier.get(self.name, b"")
            case "other":
                data = other.get(self.name, b"")
        return {**files, self.name: data}


DAMAGE = st.builds(
    Damage,
    name=st.sampled_from(NAMES),
    kind=st.sampled_from(["missing", "empty", "short", "flipped", "flipped", "zeroed", "earlier", "other"]),
    where=st.floats(0, 1),
    mask=st.integers(1, 255),
)


def files_of(path: Path) -> Files:
    return {each.name: each.read_bytes() for each in path.iterdir()}


def written(path: Path, sizes: Sequence[int], pages: float | None) -> tuple[Files, Files]:
    """The files after each write was acknowledged and the process killed, and those of a moment before.

    ``pages``: which part of the main file's pages it had copied from the log when it was killed.
    """
    with closing(Directory(path)) as kept:
        moments = [files_of(path)]
        for number, size in enumerate(sizes):
            kept.append(NAME, KeptBatch(bytes([number]) * size, number, 0))
            if number % 3 == 2:
                kept.drop_before(NAME, number - 1)
            kept.commit()
            moments.append(files_of(path))
        if pages is not None and size_of(path / LOG):
            kept._acknowledge(is_copying=True)
            killed = files_of(path)
            kept._checkpoint("PASSIVE")
            copied = (path / FILE_NAME).read_bytes()
            at = int(pages * len(copied) / PAGE_BYTES) * PAGE_BYTES
            moments.append({**killed, FILE_NAME: copied[:at] + killed[FILE_NAME][at:]})
        return moments[-1], moments[len(moments) // 2]


def expected(sizes: Sequence[int]) -> dict[int, bytes]:
    batches: dict[int, bytes] = {}
    for number, size in enumerate(sizes):
        batches[number] = bytes([number]) * size
        if number % 3 == 2:
            batches = {each: data for each, data in batches.items() if each >= number - 1}
    return batches


def found(path: Path, *, accept_data_loss: bool = False) -> dict[int, bytes] | None:
    """The batches by their offsets; None if the directory is refused."""
    try:
        with closing(Directory(path, accept_data_loss=accept_data_loss)) as kept:
            contents = kept.read().logs.get(NAME)
    except DataDirError:
        return None
    return {} if contents is None else dict(zip(contents.last_offsets, contents.batches, strict=True))


@given(
    sizes=st.lists(st.integers(1, 15_000), min_size=1, max_size=12),
    pages=st.none() | st.floats(0, 1),
    log_bytes=st.sampled_from([30_000, 10**9]),
    damages=st.lists(DAMAGE, max_size=1),
)
def test_a_damaged_directory_is_refused_or_has_all_that_was_acknowledged(
    sizes: list[int], pages: float | None, log_bytes: int, damages: list[Damage]
) -> None:
    with tempfile.TemporaryDirectory() as folder, patch.object(directory, "LOG_BYTES", log_bytes):
        files, earlier = written(Path(folder) / "one", sizes, pages)
        other, _ = written(Path(folder) / "other", [100, 20_000, 100], None)
        for each in damages:
            files = each.done_to(files, earlier, other)
        path = Path(folder) / "damaged"
        path.mkdir()
        for name, data in files.items():
            (path / name).write_bytes(data)
        batches = found(path)
        if damages and batches is None:
            left = found(path, accept_data_loss=True) or {}
            assert damages[0].kind == "other" or all(
                data == bytes([number]) * sizes[number] for number, data in left.items()
            )
        else:
            assert batches == expected(sizes)
            assert found(path) == expected(sizes)
