"""Tables of loads: as Parquet in, and what `compare`, the report and a group's leader make of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow, which the extra spark brings")

import pyarrow as pa
import pyarrow.parquet as pq
from command_line import invoke

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.history import HistoryLoad, HotKey, Hour, TopicHistory, history
from loadwise.assignor.load.source import LoadSource
from loadwise.cli import loads

KEY = pa.struct([("key", pa.binary()), ("records", pa.int64()), ("bytes", pa.int64())])
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("hour", pa.timestamp("us", "UTC")),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("keys", pa.int64()),
        ("hot", pa.list_(KEY)),
    ]
)


def row(topic: str, partition: int, hour: int, size: int, **hot: int) -> dict[str, Any]:
    keys = [{"key": key.encode(), "records": 1, "bytes": of_key} for key, of_key in hot.items()]
    moment = datetime(2026, 11, 22, hour, tzinfo=UTC)
    return {
        "topic": topic,
        "partition": partition,
        "hour": moment,
        "records": 2 * size,
        "bytes": size,
        "keys": len(hot),
        "hot": keys,
    }


ROWS = [row("t", 0, 3, 100, a=60, b=40), row("t", 0, 4, 300, a=300), row("t", 2, 3, 40, c=40), row("u", 0, 3, 7)]
"""Two hours of one topic, of which partition 1 is empty, and one hour of another."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), tmp_path / "loads.parquet")
    return tmp_path / "loads.parquet"


def test_rows_of_a_partition_add_up(table: Path):
    hot = [(b"a", 0, 360.0), (b"b", 0, 40.0), (b"c", 2, 40.0)]
    three, four = (datetime(2026, 11, 22, hour, tzinfo=UTC) for hour in (3, 4))
    hours = (
        Hour(three, (100.0, 0.0, 40.0), HotKey(b"a", 0, 60.0)),
        Hour(four, (300.0, 0.0, 0.0), HotKey(b"a", 0, 300.0)),
    )
    assert history(table) == [
        TopicHistory("t", (400.0, 0.0, 40.0), 2, tuple(HotKey(*each) for each in hot), hours),
        TopicHistory("u", (7.0,), 1, (), (Hour(three, (7.0,), None),)),
    ]
    assert history(table, by="records", hot=1)[0].load == (800.0, 0.0, 80.0)
    assert history(table, hot=1)[0].hot == (HotKey(b"a", 0, 360.0),)


def test_a_folder_with_a_folder_for_each_micro_batch_is_the_same(table: Path, tmp_path: Path):
    for number, one in enumerate(ROWS):
        (folder := tmp_path / "folder" / f"batch={number}").mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist([one], schema=SCHEMA), folder / "part-0.parquet")
        (folder / "_SUCCESS").touch()
    assert history(tmp_path / "folder") == history(table)


def test_the_load_source_answers_an_hours_mean(table: Path):
    source = HistoryLoad(table)
    assert isinstance(source, LoadSource)
    snapshot = source.snapshot(["t"])
    assert {topic: list(load) for topic, load in snapshot.load.items()} == {"t": [200.0, 0.0, 20.0]}
    assert (snapshot.unit, snapshot.stale) == ("bytes/h", False)


def test_partitions_that_held_nothing_count_where_the_table_tells_how_many_there_were(tmp_path: Path) -> None:
    rows = [each | {"partitions": 5 if each["topic"] == "t" else None} for each in ROWS]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA.append(pa.field("partitions", pa.int32()))), tmp_path / "table")
    assert [each.load for each in history(tmp_path / "table")] == [(400.0, 0.0, 40.0, 0.0, 0.0), (7.0,)]
    done = invoke(["loads", str(tmp_path / "table")])
    assert "t: 440 bytes in 5 partitions and 2 hours; the fullest, 0, has 4.55 times the mean" in done.output


def test_a_table_that_tells_of_too_many_partitions_is_refused(tmp_path: Path) -> None:
    rows = [each | {"partitions": -1} for each in ROWS]
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA.append(pa.field("partitions", pa.int32()))), tmp_path / "table")
    with pytest.raises(BadGroupError, match="topic 't' has -1 partitions"):
        history(tmp_path / "table")


def test_a_key_that_is_no_text_is_shown_by_its_bytes(tmp_path: Path) -> None:
    hot = {"hot": [{"key": b"\xff\x01", "records": 3, "bytes": 90}]}
    pq.write_table(pa.Table.from_pylist([row("t", 0, 3, 100) | hot], schema=SCHEMA), tmp_path / "table")
    done = invoke(["loads", str(tmp_path / "table")])
    assert r"key b'\xff\x01' in partition 0: 90.0% of all bytes" in done.output


def test_more_partitions_are_no_advice_where_each_hour_has_a_hot_key_of_its_own(tmp_path: Path) -> None:
    rows = [
        row("t", number, hour, 10 + 60 * (number == 2), **{f"k{hour}": 9}) for hour in range(8) for number in range(4)
    ]
    rows = [
        each if each["partition"] != 2 else each | row("t", 2, each["hour"].hour, 70, **{f"k{each['hour'].hour}": 65})
        for each in rows
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "table")
    done = invoke(["loads", str(tmp_path / "table")])
    assert "in the worst one a single key has 65% of the load. More partitions do not help" in done.output


def test_hours_with_the_same_hot_key_tell_nothing_new(tmp_path: Path) -> None:
    rows = [row("t", number, hour, 10 + 60 * (number == 0), hot=60) for hour in range(4) for number in range(4)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "table")
    done = invoke(["loads", str(tmp_path / "table")])
    assert "has 2.80 times the mean" in done.output
    assert "hours are uneven" not in done.output


def test_a_single_hour_without_keys_tells_nothing_new(tmp_path: Path) -> None:
    rows = [row("t", number, 3, 70 if number == 0 else 10) for number in range(4)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "table")
    done = invoke(["loads", str(tmp_path / "table")])
    assert "has 2.80 times the mean" in done.output
    assert "hours are uneven" not in done.output


def test_a_hot_key_that_changes_each_hour_is_told(tmp_path: Path) -> None:
    rows = [
        row("t", number, hour, 70 if number == hour else 10, **{f"k{hour}": 65})
        for hour in range(4)
        for number in range(4)
    ]
    rows = [each if each["partition"] == each["hour"].hour else each | {"hot": []} for each in rows]
    rows.append(row("t", 0, 9, 5, late=5))  # an hour with next to nothing
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "table")
    done = invoke(["loads", str(tmp_path / "table")])
    assert (
        "4 of 4 hours are uneven, with 4 different hottest keys; in the worst, 2026-11-22 00:00, partition 0 has"
        in done.output
    )
    assert "2.80 times the mean and key 'k0' 65.0% of the bytes" in done.output
    assert "Over all hours the partitions are even, but 4 of 4 hours are not." in done.output
    told = json.loads(invoke(["loads", str(tmp_path / "table"), "--json"]).stdout)[0]["uneven_hours"]
    assert (told["uneven"], told["hottest_keys"], told["key"], told["max_over_mean"]) == (4, 4, "k0", 2.8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partition": None}, "partition None; both must be set"),
        ({"partition": -1}, "partition -1; both must be set"),
        ({"bytes": -5}, "the load of t-0 is -5; it must be 0 or more"),
        ({"bytes": None}, "the load of t-0 is None; it must be 0 or more"),
        ({"hour": None}, "has a row without an hour"),
    ],
)
def test_rows_that_cannot_be_are_refused(tmp_path: Path, change: dict[str, Any], message: str):
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.Table.from_pylist([ROWS[0] | change], schema=SCHEMA), path)
    with pytest.raises(BadGroupError, match=message):
        HistoryLoad(path)


def test_what_is_no_such_table_is_refused_by_name(tmp_path: Path):
    text, other = tmp_path / "text.parquet", tmp_path / "other.parquet"
    text.write_text("topic,partition,load\n")
    pq.write_table(pa.table({"topic": ["t"]}), other)
    for path in (text, other, tmp_path / "missing.parquet"):
        with pytest.raises(BadGroupError, match=path.name):
            history(path)


def test_compare_takes_the_table(table: Path):
    done = invoke(["compare", "--loads", str(table), "--members", "2", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    weighted = next(each for each in told["assignors"] if each["assignor"] == "weighted")
    assert weighted["max_over_mean"] == pytest.approx(200 / ((200 + 20 + 7) / 2), rel=1e-3)


def test_the_report_of_a_table_that_is_there(table: Path):
    done = invoke(["loads", str(table)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "t: 440 bytes in 3 partitions and 2 hours; the fullest, 0, has 2.73 times the mean"
    assert lines[1] == "  key 'a' in partition 0: 81.8% of all bytes"
    told = json.loads(invoke(["loads", str(table), "--json", "--by", "records"]).stdout)
    assert [each["total"] for each in told] == [880.0, 14.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topic", "t"], "--bootstrap-servers HOST:PORT and --topic NAME go together"),
        (["--bootstrap-servers", "localhost:9"], "--bootstrap-servers HOST:PORT and --topic NAME go together"),
        (["--since", "2026-11-22"], "--since is for reading topics"),
        (["--checkpoint", "c"], "--checkpoint is for reading topics"),
    ],
)
def test_options_that_do_not_go_together(table: Path, arguments: list[str], message: str):
    done = invoke(["loads", str(table), *arguments])
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("there", "arguments", "message"),
    [
        ("notes.txt", [], "contains notes.txt, which is not from a run without --checkpoint"),
        ("batch=0", [], "contains batch=0, which is not from a run without --checkpoint"),
        ("part-0.parquet", ["--checkpoint", "c"], "contains part-0.parquet, which is not from a run with --checkpoint"),
    ],
)
def test_a_folder_with_anything_else_in_it_is_not_replaced(
    tmp_path: Path, there: str, arguments: list[str], message: str
):
    (tmp_path / there).touch()
    reading = ["--bootstrap-servers", "localhost:9", "--topic", "t", *arguments]
    done = invoke(["loads", str(tmp_path), *reading])
    assert done.exit_code == 2
    assert message in done.stderr
    assert (tmp_path / there).exists()


@pytest.mark.parametrize(("planned", "goes_on"), [((), False), ((0, 1, 2), False), ((2, 3), True), ((4,), True)])
def test_what_was_written_with_another_checkpoint_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: tuple[int, ...], goes_on: bool
):
    """Each checkpoint numbers its micro-batches from 0 on, and so the folders that they are written to."""
    folder, checkpoint = tmp_path / "loads", tmp_path / "checkpoint"
    for number in range(4):
        (folder / f"batch={number}").mkdir(parents=True)
    for number in planned:
        (checkpoint / "offsets" / str(number)).mkdir(parents=True)
    written: list[Path] = []
    monkeypatch.setattr(loads, "_write", lambda _, table, *__: written.append(table))
    reading = ["--bootstrap-servers", "localhost:9", "--topic", "t", "--checkpoint", str(checkpoint)]
    done = invoke(["loads", str(folder), *reading])
    assert written == [folder] * goes_on
    assert ("was written with a different checkpoint, not" in done.stderr) is not goes_on


def test_a_file_is_not_replaced(table: Path):
    done = invoke(["loads", str(table), "--bootstrap-servers", "localhost:9", "--topic", "t"])
    assert done.exit_code == 2
    assert "is a file, but Spark writes a folder" in done.stderr


def test_a_table_that_is_not_there(tmp_path: Path):
    done = invoke(["loads", str(tmp_path / "none.parquet")])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"loadwise loads: there is no table {tmp_path / 'none.parquet'}; ")
