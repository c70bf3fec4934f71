"""``loadwise loads``: what topics have held by partition and hour, to a file, and why their partitions are uneven."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadwise.assignor.errors import BadGroupError
from loadwise.cli.parser import Parser, add_command_config, one_of, whole_number
from loadwise.cli.progress import waiting
from loadwise.cli.text_files import read_text
from loadwise.installation import pip_install
from loadwise.running_group.command_config import properties
from loadwise.running_group.errors import BadConnectionError, UnreadableGroupError

if TYPE_CHECKING:
    from loadwise.loads.skew import Skew, UnevenHours

_OUR_ERROR = re.compile(r"^loadwise\.spark_source\.errors\.\w+: (.+)$", re.MULTILINE)
"""The source's own error within Spark's, behind the traceback of the process that it was raised in."""
_WEIGHTS = ("bytes", "records")
_KEYS_SHOWN = 5
_MUCH_MORE = 1.5
"""How many times as uneven as all hours the worst one must be to be shown with the same hottest key."""
_LEAST_SHOWN = 0.01
"""The share of its topic that a key has at least which is shown."""


DESCRIPTION = """Write how much data topics have, by partition and hour, and report which keys make partitions uneven.

With --topic, the command reads the topics with a local Spark and writes the table. Without, it reports on an existing
table. `examples/spark_loads.py` does the same on a cluster."""
EPILOG = """examples:
  loadwise loads loads.parquet --bootstrap-servers broker:9092 --topic clicks
  loadwise loads loads.parquet --by records
  loadwise compare --loads loads.parquet --members 4"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "table",
        type=Path,
        metavar="TABLE",
        help="the Parquet table: with --topic it is written first; then it is read for the report",
    )
    topics = parser.add_argument_group("the topics to read")
    topics.add_argument(
        "--bootstrap-servers", metavar="HOST:PORT", help="a broker of the cluster to read from; needs --topic"
    )
    topics.add_argument("--topic", action="append", default=[], metavar="NAME", help="a topic to read; may be repeated")
    topics.add_argument(
        "--since",
        type=_moment,
        metavar="TIME",
        help="read records from this time on, in UTC (default: from the oldest)",
    )
    topics.add_argument(
        "--until",
        type=_moment,
        metavar="TIME",
        help="read records before this time, in UTC (default: up to the newest)",
    )
    topics.add_argument(
        "--checkpoint",
        type=Path,
        metavar="FOLDER",
        help="read only what has arrived since the last run with this folder, and add it to the table; use this in a"
        " job that runs every hour",
    )
    topics.add_argument(
        "--hot-keys",
        type=whole_number(least=1, most=1000),
        metavar="NUMBER",
        default=20,
        help="how many keys to keep for each partition and hour",
    )
    add_command_config(topics)
    report = parser.add_argument_group("the report")
    report.add_argument(
        "--by",
        type=one_of(_WEIGHTS),
        choices=_WEIGHTS,
        metavar="WHAT",
        default="bytes",
        help="the unit in which partitions are compared: bytes or records",
    )
    report.add_argument("--json", dest="as_json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Read and report; the status is 2 for wrong input, and 1 if the topics cannot be read."""
    table: Path = options.table
    checkpoint: Path | None = options.checkpoint
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow", "aiokafka")):
        return _failed(f"it needs Spark, which is not installed; get it with: {pip_install('spark')}", 1)
    try:
        source = _source(options)
        if source is not None:
            _refuse_to_replace(table, incremental=checkpoint is not None)
            if checkpoint is not None:
                _refuse_another(table, checkpoint)
            with waiting(f"reading {source['subscribe']} with Spark"):
                _write(source, table, checkpoint, options.hot_keys)
        found = _report(table, options.by)
    except (BadGroupError, BadConnectionError) as error:
        return _failed(error, 2)
    except UnreadableGroupError as error:
        return _failed(error, 1)
    if options.as_json:
        sys.stdout.write(json.dumps([_as_json(each, options.by) for each in found], allow_nan=False) + "\n")
    else:
        sys.stdout.write("\n\n".join(_text(each, options.by) for each in found) + "\n")
    return 0


def _failed(error: object, status: int) -> int:
    sys.stderr.write(f"loadwise loads: {error}\n")
    return status


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, such as 2026-01-31 or 2026-01-31T13:00:00") from None


def _source(given: argparse.Namespace) -> dict[str, str] | None:
    """The options of the Spark source; None where nothing is to be read. Raises `BadConnectionError`."""
    config: Path | None = given.command_config
    if given.bootstrap_servers is None and not given.topic:
        for name in ("since", "until", "checkpoint", "command_config"):
            if getattr(given, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise BadConnectionError(f"{option} is for reading topics: give --bootstrap-servers and --topic")
        return None
    if given.bootstrap_servers is None or not given.topic:
        raise BadConnectionError("--bootstrap-servers HOST:PORT and --topic NAME go together")
    if given.checkpoint is not None and given.until is not None:
        raise BadConnectionError("--until cannot be combined with --checkpoint, which reads all that has arrived")
    found = {} if config is None else properties(read_text(config, BadConnectionError), str(config))
    options = {f"kafka.{name}": value for name, value in found.items()}
    options |= {"kafka.bootstrap.servers": given.bootstrap_servers, "subscribe": ",".join(given.topic)}
    if given.since is None:
        options["startingOffsets"] = "earliest"
    else:
        options |= {"startingTimestamp": _ms(given.since), "startingOffsetsByTimestampStrategy": "latest"}
    if given.until is not None:
        options["endingTimestamp"] = _ms(given.until)
    return options


def _refuse_to_replace(table: Path, *, incremental: bool) -> None:
    """Raise `BadConnectionError` unless there is nothing at this path, or a table that such a run may write to.

    Spark deletes what is in a folder that it overwrites.
    """
    if not table.exists():
        return
    if not table.is_dir():
        raise BadConnectionError(f"{table} is a file, but Spark writes a folder; name another path, or remove the file")
    names = [path.name for path in table.iterdir() if not path.name.startswith(("_", "."))]
    strange = next(
        (
            name
            for name in sorted(names)
            if not (name.startswith("batch=") if incremental else name.endswith(".parquet"))
        ),
        None,
    )
    if strange is not None:
        kind = "with --checkpoint" if incremental else "without --checkpoint"
        raise BadConnectionError(f"{table} contains {strange}, which is not from a run {kind}; name another folder")


def _refuse_another(table: Path, checkpoint: Path) -> None:
    """Raise `BadConnectionError` where the table holds micro-batches that the checkpoint does not know of.

    They are numbered from 0 on by their checkpoint, so those of another one would take their place.
    """
    written = (
        int(number) for path in table.glob("batch=*") if (number := path.name.removeprefix("batch=")).isdecimal()
    )
    known = (int(path.name) for path in checkpoint.glob("offsets/*") if path.name.isdecimal())
    if max(written, default=-1) > max(known, default=-1):
        raise BadConnectionError(
            f"{table} was written with a different checkpoint, not {checkpoint}, so its rows would be replaced;"
            " give the original checkpoint, or another folder for the table"
        )


def _ms(moment: datetime) -> str:
    return str(round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000))


def _write(options: dict[str, str], table: Path, checkpoint: Path | None, hot_keys: int) -> None:
    from pyspark.errors import PySparkException

    from loadwise.loads.job import write_batch, write_new
    from loadwise.spark_source.errors import SparkSourceError
    from loadwise.spark_source.session import local_session

    folder = table.resolve().as_uri()
    try:
        with local_session("loadwise loads") as spark:
            if checkpoint is None:
                write_batch(spark, options, folder, hot_keys=hot_keys)
            else:
                write_new(spark, options, folder, checkpoint.resolve().as_uri(), hot_keys=hot_keys)
    except SparkSourceError as error:
        raise UnreadableGroupError(f"{options['subscribe']} cannot be read: {error}") from error
    except PySparkException as error:
        ours = _OUR_ERROR.findall(str(error))
        raise UnreadableGroupError(f"{options['subscribe']} cannot be read: {ours[-1] if ours else error}") from error


def _report(table: Path, by: str) -> list[Skew]:
    from loadwise.assignor.load.history import history
    from loadwise.dispatcher.keys import partition_of
    from loadwise.loads.skew import skew_of

    if not table.exists():
        raise BadGroupError(f"there is no table {table}; to write one, give --bootstrap-servers and --topic")
    found = [skew_of(each, partition_of) for each in history(table, by=by)]
    if not found:
        raise BadGroupError(f"{table} has no rows: there was nothing to read")
    return found


def _text(skew: Skew, by: str) -> str:
    hours = f"{skew.hours} hour{'s' * (skew.hours != 1)}"
    lines = [
        f"{skew.topic}: {skew.total:,.0f} {by} in {skew.partitions} partitions and {hours};"
        f" the fullest, {skew.fullest}, has {skew.max_over_mean:.2f} times the mean"
    ]
    for each in skew.hot[:_KEYS_SHOWN]:
        share = each.load / skew.total if skew.total else 0.0
        if share < _LEAST_SHOWN:
            break
        lines.append(f"  key {_shown(each.key)} in partition {each.partition}: {share:.1%} of all {by}")
    apart = skew.hours_apart
    # If one key is hot all the time, or none is, the hours add nothing.
    if apart is not None and (apart.hot_keys > 1 or apart.max_over_mean > _MUCH_MORE * skew.max_over_mean):
        lines.append(f"  {_hours(apart, by)}")
    lines += [f"  with {each.change}: {each.max_over_mean:.2f}" for each in skew.what_if]
    return "\n".join([*lines, f"  {skew.advice}"])


def _hours(apart: UnevenHours, by: str) -> str:
    load, key = apart.worst.load, apart.worst.hottest
    keys = f", with {apart.hot_keys} different hottest keys" if apart.hot_keys > 1 else ""
    told = (
        f"{apart.uneven} of {apart.of} hours are uneven{keys}; in the worst,"
        f" {apart.worst.begins:%Y-%m-%d %H:%M}, partition {load.index(max(load))} has {apart.max_over_mean:.2f} times"
        " the mean"
    )
    return told if key is None else f"{told} and key {_shown(key.key)} {key.load / sum(load):.1%} of the {by}"


def _shown(key: bytes) -> str:
    try:
        return repr(key.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(key)


def _as_json(skew: Skew, by: str) -> dict[str, Any]:
    return {
        "topic": skew.topic,
        "by": by,
        "hours": skew.hours,
        "total": skew.total,
        "partitions": skew.partitions,
        "fullest": skew.fullest,
        "max_over_mean": skew.max_over_mean,
        "placed_by_hash": skew.by_hash,
        "hot_keys": [
            {"key": each.key.decode("utf-8", "backslashreplace"), "partition": each.partition, by: each.load}
            for each in skew.hot
        ],
        "what_if": [{"change": each.change, "max_over_mean": each.max_over_mean} for each in skew.what_if],
        "uneven_hours": _hours_as_json(skew.hours_apart),
        "advice": skew.advice,
    }


def _hours_as_json(apart: UnevenHours | None) -> dict[str, Any] | None:
    if apart is None:
        return None
    key = apart.worst.hottest
    return {
        "uneven": apart.uneven,
        "of": apart.of,
        "hottest_keys": apart.hot_keys,
        "worst": apart.worst.begins.isoformat(),
        "max_over_mean": apart.max_over_mean,
        "key": None if key is None else key.key.decode("utf-8", "backslashreplace"),
    }
