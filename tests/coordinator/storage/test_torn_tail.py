"""A write-ahead log that ends in the middle of a write, or is damaged: SQLite's recovery decides what is there."""

from __future__ import annotations

import re
import shutil
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from loadwise.coordinator.keeper import KeptBatch, LogName
from loadwise.coordinator.storage.directory import FILE_NAME, Directory

LOG = f"{FILE_NAME}-wal"
HEADER_BYTES = 32
FRAME_BYTES = 24 + 4096
COMMITS = 6
NAME = LogName(UUID(int=1), 0)


@dataclass(frozen=True)
class Killed:
    """What a process leaves that is killed while it has a directory open."""

    path: Path
    sizes: list[int]
    """Size of the write-ahead log when it had no batch, and after each commit of one."""

    def copied(self, to: Path, size: int) -> Path:
        """A copy whose log ends at a size."""
        shutil.copytree(self.path, to)
        with (to / LOG).open("r+b") as log:
            log.truncate(size)
        return to


def commit(directory: Directory, number: int) -> None:
    directory.append(NAME, KeptBatch(bytes(9000), number, 0))
    directory.commit()


def batches(path: Path) -> int:
    """How many batches a directory has, when it is opened; that they are the first ones is checked."""
    with closing(Directory(path)) as directory:
        contents = directory.read().logs.get(NAME)
    found = [] if contents is None else list(contents.last_offsets)
    assert found == list(range(len(found)))
    return len(found)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    with closing(Directory(tmp_path / "open")) as directory:
        log = tmp_path / "open" / LOG
        sizes = [log.stat().st_size]
        for number in range(COMMITS):
            commit(directory, number)
            sizes.append(log.stat().st_size)
        yield Killed(tmp_path / "open", sizes)


def cut_bytes(caplog: pytest.LogCaptureFixture) -> int:
    """How many bytes it was told that were cut; 0 if nothing was."""
    told = [record.getMessage() for record in caplog.records]
    caplog.clear()
    assert len(told) <= 1
    found = [re.search(r"not whole, .* its last (\d+) bytes were cut off", each) for each in told]
    return sum(int(each[1]) for each in found if each is not None)


def test_the_rest_of_a_write_is_cut_with_a_message(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the file ends: all commits before that are there, and the message tells all bytes behind the last."""
    last = killed.sizes[-1]
    ends = {last, *killed.sizes, *(size - 1 for size in killed.sizes), *(size + 5 for size in killed.sizes[:-1])}
    ends |= set(range(killed.sizes[-2], last, 1000)) | {killed.sizes[-2] + FRAME_BYTES, killed.sizes[-2] + 20}
    for end in sorted(ends):
        copy = killed.copied(tmp_path / str(end), end)
        whole = bisect_right(killed.sizes, end) - 1
        assert batches(copy) == max(whole, 0)
        assert cut_bytes(caplog) == end - (killed.sizes[whole] if whole >= 0 else HEADER_BYTES), end
        assert batches(copy) == max(whole, 0)
        assert cut_bytes(caplog) == 0, "it is told once"


@pytest.mark.parametrize("end", [1, HEADER_BYTES - 1])
def test_a_log_without_a_whole_header_is_cut(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture, end: int
) -> None:
    # Nothing of it can be read: the tables are in it.
    assert batches(killed.copied(tmp_path / "copy", end)) == 0
    assert cut_bytes(caplog) == end


def test_whole_writes_behind_a_damaged_place_are_counted(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
    with (copy / LOG).open("r+b") as log:
        log.seek(killed.sizes[2] + 100)  # in the third of six
        log.write(b"\xff\xfe")
    assert batches(copy) == 2
    lost = killed.sizes[-1] - killed.sizes[2]
    assert f"its last {lost} bytes were cut off, and 4 whole writes in them are lost" in caplog.text


def test_a_damaged_header_is_told(killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
    with (copy / LOG).open("r+b") as log:
        log.seek(12)
        log.write(b"\xff")
    assert batches(copy) == 0
    assert cut_bytes(caplog) == killed.sizes[-1]


def test_old_frames_behind_the_end_are_no_tail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a checkpoint SQLite writes over the log from its beginning, and the rest of it stays."""
    with closing(Directory(tmp_path / "open")) as directory:
        for number in range(400):  # more than the 1,000 pages of a checkpoint, then fewer
            commit(directory, number)
        log = tmp_path / "open" / LOG
        largest = log.stat().st_size
        directory._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        commit(directory, 400)
        assert log.stat().st_size == largest
        shutil.copytree(tmp_path / "open", tmp_path / "whole")
        shutil.copytree(tmp_path / "open", tmp_path / "cut")
    assert batches(tmp_path / "whole") == 401
    assert not caplog.records
    with (tmp_path / "cut" / LOG).open("r+b") as file:
        file.truncate(HEADER_BYTES + 10 * FRAME_BYTES + 2000)  # in the old frames
    assert batches(tmp_path / "cut") == 401
    assert not caplog.records


def test_a_directory_that_was_closed_has_no_tail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(Directory(tmp_path)) as directory:
        commit(directory, 0)
    assert batches(tmp_path) == 1
    assert not caplog.records
