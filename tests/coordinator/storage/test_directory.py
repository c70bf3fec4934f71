"""A data directory: what it refuses, what it finds damaged, and that its format stays what it is."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args

import pytest
from cluster_walk import new_router
from record_batches import batch
from streams_groups import Client, Driver

from loadwise.coordinator import BadClusterError, Coordinator, DataDirError, LostWritesError, NotRunningError
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.groups.records import KindRecord, Record
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.share.records import ShareRecord
from loadwise.coordinator.storage.directory import Directory
from loadwise.coordinator.storage.files import FILE_NAME
from loadwise.coordinator.storage.kinds import FORMAT, KINDS, Codec
from loadwise.coordinator.streams.records import StreamsRecord
from loadwise.coordinator.streams.topology import Endpoint
from loadwise.protocol.error_codes import ErrorCode


def filled(path: Path, records: int = 3) -> None:
    """A directory with a topic, and a batch for each record."""
    directory = Directory(path)
    cluster = new_router().cluster
    cluster.load(directory.read(), directory, 1000)
    cluster.topics.create("t", 1, {"retention.ms": "-1"})
    log = cluster.topics.log("t", 0)
    assert log is not None
    for number in range(records):
        appended = log.append(batch([b"%d" % number * 100]), now_ms=1000)
        assert appended.error is ErrorCode.NONE
        cluster.grown(log, appended)
    directory.commit()
    directory.close()


def log_of(path: Path) -> PartitionLog:
    cluster = new_router().cluster
    with closing(Directory(path)) as directory:
        cluster.load(directory.read(), directory, 1000)
    log = cluster.topics.log("t", 0)
    assert log is not None
    return log


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    filled(tmp_path)
    directory = Directory(tmp_path)
    cluster = new_router().cluster
    cluster.load(directory.read(), directory, 1000)
    cluster.topics.create("late", 1)
    assert directory.has_changes
    directory.close()
    assert log_of(tmp_path).end_offset == 3
    directory = Directory(tmp_path)
    assert "late" not in str(directory.read().values)
    directory.close()


def test_two_cannot_use_one(tmp_path: Path) -> None:
    filled(tmp_path)
    code = "import sys; from loadwise.coordinator.storage.directory import Directory; Directory(sys.argv[1])"
    directory = Directory(tmp_path)
    try:
        other = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
        assert f"another process uses the data directory {tmp_path}" in other.stderr
        with pytest.raises(DataDirError, match="another process"):
            Directory(tmp_path)
    finally:
        directory.close()
    assert log_of(tmp_path).end_offset == 3


def test_a_newer_format_and_another_programs_file_are_refused(tmp_path: Path) -> None:
    filled(tmp_path / "newer")
    with sqlite3.connect(tmp_path / "newer" / FILE_NAME) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    db.close()
    with pytest.raises(DataDirError, match=f"has format {FORMAT + 1}"):
        Directory(tmp_path / "newer")
    (tmp_path / "other").mkdir()
    with sqlite3.connect(tmp_path / "other" / FILE_NAME) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(DataDirError, match="another program"):
        Directory(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataDirError, match="cannot be used"):
        Directory(tmp_path / "file")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / FILE_NAME).write_text("this is no database at all" * 100)
    with pytest.raises(DataDirError, match=r"is damaged: loadwise\.sqlite3: file is not a database"):
        Directory(tmp_path / "text")


@pytest.mark.parametrize("step", [397, pytest.param(97, marks=pytest.mark.long)])
def test_a_damaged_byte_is_found_or_does_no_harm(tmp_path: Path, step: int) -> None:
    filled(tmp_path / "whole", records=20)
    whole = (tmp_path / "whole" / FILE_NAME).read_bytes()
    expected = log_of(tmp_path / "whole").read(0, 100_000, at_least_one=True)
    found = 0
    for at in range(0, len(whole), step):
        path = tmp_path / str(at)
        shutil.copytree(tmp_path / "whole", path)
        (path / FILE_NAME).write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            log = log_of(path)
        except DataDirError:
            found += 1
        else:
            assert log.read(0, 100_000, at_least_one=True) == expected
        shutil.rmtree(path)
    assert found > 5000 / step


def test_a_file_that_ends_early_is_found(tmp_path: Path) -> None:
    filled(tmp_path, records=50)
    file = tmp_path / FILE_NAME
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(DataDirError, match="is damaged"):
        log_of(tmp_path)


def test_a_log_that_ends_within_an_acknowledged_write_is_refused_until_that_is_accepted(tmp_path: Path) -> None:
    """As after a loss of power: SQLite's write-ahead log ends within what was committed last."""
    filled(tmp_path / "begun")
    directory = Directory(tmp_path / "begun")
    cluster = new_router().cluster
    cluster.load(directory.read(), directory, 1000)
    log = cluster.topics.log("t", 0)
    assert log is not None
    for _ in range(5):
        cluster.grown(log, log.append(batch([b"x" * 5000]), now_ms=1000))
        directory.commit()
    shutil.copytree(tmp_path / "begun", tmp_path / "cut")
    directory.close()
    wal = tmp_path / "cut" / f"{FILE_NAME}-wal"
    os.truncate(wal, wal.stat().st_size - 100)
    assert log_of(tmp_path / "begun").end_offset == 8
    with pytest.raises(LostWritesError, match=r"1 of 7 acknowledged writes are lost: loadwise\.sqlite3-wal is damaged"):
        Directory(tmp_path / "cut")
    Directory(tmp_path / "cut", accept_data_loss=True).close()
    assert log_of(tmp_path / "cut").end_offset == 7


def test_every_kind_of_record_has_a_name() -> None:
    kept = {each for each in get_args(Record | ShareRecord | StreamsRecord) if not each.__name__.endswith("Tombstone")}
    kept.remove(KindRecord)  # the base of those of features
    assert kept <= set(KINDS.values())
    assert all(map(is_dataclass, KINDS.values()))
    assert len(set(KINDS.values())) == len(KINDS)


def test_the_records_of_a_streams_group_are_read_as_they_were_written() -> None:
    driver = Driver(num_standby_replicas=1)
    first, second = Client("a", "p", endpoint=Endpoint("h", 1), tags={"zone": "z"}), Client("b", "q")
    driver.join(first)
    driver.join(second)
    driver.beat_as(first)
    codec = Codec()
    kinds = set()
    for record in driver.group.records():
        kind, text = codec.encoded(record)
        assert codec.decoded(kind, text) == record
        kinds.add(kind)
    assert kinds == {name for name in KINDS if name.startswith("streams")}


async def test_it_is_read_when_the_coordinator_starts(tmp_path: Path) -> None:
    filled(tmp_path)
    coordinator = Coordinator(topics={"t": 5, "u": 2}, data_dir=tmp_path)
    with pytest.raises(NotRunningError, match="data directory"):
        coordinator.create_topic("v")
    with pytest.raises(NotRunningError, match="data directory"):
        coordinator.restore(Snapshot((), {}))
    for _ in range(2):
        async with coordinator:
            counts = {topic.name: len(topic.partitions) for topic in coordinator.cluster.topics}
            assert counts == {"t": 1, "u": 2}
            with pytest.raises(DataDirError, match="another process"):
                await Coordinator(data_dir=tmp_path).start()
    async with Coordinator(topics={"w": 1}, brokers=3, data_dir=tmp_path) as larger:
        assert larger.cluster.topics.get("t") is not None
    with pytest.raises(BadClusterError, match="use at least as many"):
        await Coordinator(data_dir=tmp_path).start()
    Directory(tmp_path).close()  # nobody has it


async def test_a_snapshot_that_is_put_back_is_what_the_directory_has(tmp_path: Path) -> None:
    async with Coordinator(topics={"t": 2}, data_dir=tmp_path) as coordinator:
        snapshot = coordinator.snapshot()
        coordinator.create_topic("later")
        coordinator.restore(snapshot)
    async with Coordinator(data_dir=tmp_path) as coordinator:
        assert [topic.name for topic in coordinator.cluster.topics] == ["t"]
