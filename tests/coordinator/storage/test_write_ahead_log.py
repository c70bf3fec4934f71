"""A write-ahead log that ends in the middle of a write, or is damaged: SQLite's recovery decides what is there."""

from __future__ import annotations

import re
import shutil
import sqlite3
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from own_log import own_log

from loadwise.coordinator import LostWritesError
from loadwise.coordinator.keeper import KeptBatch, LogName
from loadwise.coordinator.storage.directory import Directory
from loadwise.coordinator.storage.files import ACKNOWLEDGED_NAME, FILE_NAME

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
    acknowledged: list[bytes]
    """What the file of that name had then."""

    def copied(self, to: Path, size: int) -> Path:
        """A copy whose log ends at a size, as when the process was killed then."""
        shutil.copytree(self.path, to)
        with (to / LOG).open("r+b") as log:
            log.truncate(size)
        (to / ACKNOWLEDGED_NAME).write_bytes(self.acknowledged[bisect_right(self.sizes, size) - 1])
        return to


def commit(directory: Directory, number: int) -> None:
    directory.append(NAME, KeptBatch(bytes(9000), number, 0))
    directory.commit()


def batches(path: Path, *, accept_data_loss: bool = False) -> int:
    """How many batches a directory has, when it is opened; that they are the first ones is checked."""
    with closing(Directory(path, accept_data_loss=accept_data_loss)) as directory:
        contents = directory.read().logs.get(NAME)
    found = [] if contents is None else list(contents.last_offsets)
    assert found == list(range(len(found)))
    return len(found)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Killed]:
    with closing(Directory(tmp_path / "open")):
        pass
    with closing(Directory(tmp_path / "open")) as directory:
        log, acknowledged = tmp_path / "open" / LOG, tmp_path / "open" / ACKNOWLEDGED_NAME
        moments = [(log.stat().st_size, acknowledged.read_bytes())]
        for number in range(COMMITS):
            commit(directory, number)
            moments.append((log.stat().st_size, acknowledged.read_bytes()))
        yield Killed(tmp_path / "open", *map(list, zip(*moments, strict=True)))


def files(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in path.iterdir()}


def refused_and_accepted(path: Path, reason: str) -> int:
    """How many batches are left of a directory that is refused, and not changed by that."""
    before = files(path)
    with pytest.raises(LostWritesError, match=reason) as refusal:
        Directory(path)
    assert "--accept-data-loss (accept_data_loss=True)" in str(refusal.value)
    assert files(path) == before
    left = batches(path, accept_data_loss=True)
    assert batches(path) == left, "it is accepted once"
    return left


def cut_bytes(caplog: pytest.LogCaptureFixture) -> int:
    """How many bytes it was told that were cut; 0 if nothing was."""
    told = [record.getMessage() for record in own_log(caplog)]
    caplog.clear()
    assert len(told) <= 1
    found = [re.search(r"incomplete write, .* its last (\d+) bytes were cut off", each) for each in told]
    return sum(int(each[1]) for each in found if each is not None)


def test_the_rest_of_a_write_is_cut_with_a_message(
    killed: Killed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever the file ends: all commits before that are there, and the message tells all bytes behind the last."""
    last = killed.sizes[-1]
    ends = {last, *killed.sizes, *(size - 1 for size in killed.sizes), *(size + 5 for size in killed.sizes[:-1])}
    ends |= set(range(killed.sizes[-2], last, 1000)) | {killed.sizes[-2] + FRAME_BYTES, killed.sizes[-2] + 20}
    for end in sorted({*ends, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 5} - {-1}):
        copy = killed.copied(tmp_path / str(end), end)
        whole = bisect_right(killed.sizes, end) - 1
        assert batches(copy) == whole
        header_bytes = HEADER_BYTES if not whole and end >= HEADER_BYTES else 0
        assert cut_bytes(caplog) == end - killed.sizes[whole] - header_bytes, end
        assert batches(copy) == whole
        assert cut_bytes(caplog) == 0, "it is told once"


def test_whole_writes_behind_a_damaged_place_are_refused(killed: Killed, tmp_path: Path) -> None:
    copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
    with (copy / LOG).open("r+b") as log:
        log.seek(killed.sizes[2] + 100)  # in the third of six
        log.write(b"\xff\xfe")
    assert refused_and_accepted(copy, f"4 of 7 acknowledged writes are lost: {LOG} is damaged") == 2


def test_a_log_that_ends_before_an_acknowledged_write_is_refused(killed: Killed, tmp_path: Path) -> None:
    """Exactly behind a whole write, where the log itself shows no trace of what followed."""
    copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
    with (copy / LOG).open("r+b") as log:
        log.truncate(killed.sizes[4])
    assert refused_and_accepted(copy, f"2 of 7 acknowledged writes are lost: {LOG} is damaged or ends too early") == 4


def test_a_damaged_header_is_refused(killed: Killed, tmp_path: Path) -> None:
    copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
    with (copy / LOG).open("r+b") as log:
        log.seek(12)
        log.write(b"\xff")
    assert refused_and_accepted(copy, f"6 of 7 acknowledged writes are lost: {LOG} is damaged") == 0


@pytest.mark.parametrize(("name", "left"), [(LOG, 0), (FILE_NAME, 0), (ACKNOWLEDGED_NAME, COMMITS)])
def test_a_missing_or_empty_file_is_refused(killed: Killed, tmp_path: Path, name: str, left: int) -> None:
    missing = killed.copied(tmp_path / "missing", killed.sizes[-1])
    (missing / name).unlink()
    assert refused_and_accepted(missing, f"{name} is missing") == left
    empty = killed.copied(tmp_path / "empty", killed.sizes[-1])
    (empty / name).write_bytes(b"")
    assert refused_and_accepted(empty, f"{name} is (missing or )?empty") == left


def test_a_missing_main_file_of_a_closed_directory_is_refused(tmp_path: Path) -> None:
    with closing(Directory(tmp_path)) as directory:
        commit(directory, 0)
    (tmp_path / FILE_NAME).unlink()
    assert refused_and_accepted(tmp_path, f"{FILE_NAME} is missing, and with it all 2 of its writes") == 0


@pytest.mark.parametrize("name", [LOG, FILE_NAME, ACKNOWLEDGED_NAME])
def test_a_file_of_another_directory_is_refused(killed: Killed, tmp_path: Path, name: str) -> None:
    with closing(Directory(tmp_path / "other")) as other:
        for number in range(COMMITS + 1):
            commit(other, number)
        copy = killed.copied(tmp_path / "copy", killed.sizes[-1])
        shutil.copyfile(tmp_path / "other" / name, copy / name)
    before = files(copy)
    with pytest.raises(LostWritesError):
        Directory(copy)
    assert files(copy) == before


def test_an_older_main_file_is_refused(tmp_path: Path) -> None:
    with closing(Directory(tmp_path / "open")) as directory:
        commit(directory, 0)
        older = (tmp_path / "open" / FILE_NAME).read_bytes()
        directory._copy_log()
        commit(directory, 1)
        shutil.copytree(tmp_path / "open", tmp_path / "copy")
    (tmp_path / "copy" / FILE_NAME).write_bytes(older)
    with pytest.raises(LostWritesError, match="is older than"):
        Directory(tmp_path / "copy")


def of_an_older_loadwise(path: Path) -> None:
    """A directory whose process was killed, by a version that did not count writes."""
    with closing(Directory(path / "begun")):
        pass
    (path / "begun" / ACKNOWLEDGED_NAME).unlink()
    with closing(sqlite3.connect(path / "begun" / FILE_NAME, isolation_level=None)) as db:
        db.execute("DROP TABLE writes")
        for number in range(COMMITS):
            db.execute(f"CREATE TABLE older{number} (value)")
        shutil.copytree(path / "begun", path / "killed")
        (path / "killed" / f"{FILE_NAME}-shm").unlink()


def test_a_directory_of_an_older_loadwise_is_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    of_an_older_loadwise(tmp_path)
    with closing(Directory(tmp_path / "killed")) as directory:
        commit(directory, 0)
    assert batches(tmp_path / "killed") == 1
    assert not own_log(caplog)
    (tmp_path / "killed" / FILE_NAME).unlink()
    assert refused_and_accepted(tmp_path / "killed", f"{FILE_NAME} is missing, and with it all 2 of its writes") == 0


@pytest.mark.parametrize("at", [12, HEADER_BYTES + FRAME_BYTES + 100])
def test_a_damaged_log_of_an_older_loadwise_is_refused(tmp_path: Path, at: int) -> None:
    of_an_older_loadwise(tmp_path)
    with (tmp_path / "killed" / LOG).open("r+b") as log:
        log.seek(at)
        log.write(b"\xff\xfe")
    refused_and_accepted(tmp_path / "killed", "is damaged, but undamaged writes follow")


def test_old_frames_behind_the_end_are_no_tail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After a checkpoint SQLite writes over the log from its beginning, and the rest of it stays."""
    with closing(Directory(tmp_path / "open")) as directory:
        for number in range(100):
            commit(directory, number)
        log = tmp_path / "open" / LOG
        largest = log.stat().st_size
        directory._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        commit(directory, 100)
        assert log.stat().st_size == largest
        shutil.copytree(tmp_path / "open", tmp_path / "whole")
        shutil.copytree(tmp_path / "open", tmp_path / "cut")
    assert batches(tmp_path / "whole") == 101
    assert not own_log(caplog)
    with (tmp_path / "cut" / LOG).open("r+b") as file:
        file.truncate(HEADER_BYTES + 10 * FRAME_BYTES + 2000)  # in the old frames
    assert batches(tmp_path / "cut") == 101
    assert not own_log(caplog)


def test_a_directory_that_was_closed_has_no_tail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(Directory(tmp_path)) as directory:
        commit(directory, 0)
    assert batches(tmp_path) == 1
    assert not own_log(caplog)
