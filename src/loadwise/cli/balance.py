"""``loadwise balance``: plan leader changes and replica moves that even out the brokers of a cluster."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadwise.assignor.errors import MissingClientError
from loadwise.balance.errors import BalanceError, UnfitClusterError
from loadwise.balance.files import read_capacities, read_cluster, written
from loadwise.balance.kafka_files import leader_election, reassignment
from loadwise.balance.page import render
from loadwise.balance.plan import plan as plan_of
from loadwise.balance.table import HEADS, MEANINGS, about, notes, rows, summary
from loadwise.cli.parser import add_command_config, at_least
from loadwise.cli.progress import waiting
from loadwise.cli.tables import aligned
from loadwise.cli.text_files import read_settings, read_text, write_page
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse

    from loadwise.balance.cluster import Cluster
    from loadwise.balance.plan import Plan
    from loadwise.cli.parser import Parser

DESCRIPTION = """Plan how bytes in, bytes out and disk of each broker come below the mean plus a tenth.

Leaders change first, because that moves no bytes; then replicas move, as few bytes as possible. Racks and stated
capacities are kept. Nothing is changed: Kafka's own tools execute the files that --out writes."""
EPILOG = f"""columns:
{chr(10).join(f"  {name:9}  {meaning}" for name, meaning in MEANINGS)}

examples:
  loadwise balance --bootstrap-servers broker:9092 --out plan
  loadwise balance --bootstrap-servers broker:9092 --save cluster.json
  loadwise balance cluster.json --capacities capacities.json --html plan.html"""
_SOURCES = "give a cluster file, or --bootstrap-servers"
_INTERVAL_S, _READS = 10.0, 1.0
REASSIGNMENT, ELECTION = "reassignment.json", "leader-election.json"


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    source = parser.add_argument_group("the cluster (one of the first two)")
    source.add_argument(
        "cluster",
        nargs="?",
        type=Path,
        metavar="CLUSTER",
        help="brokers and partitions as a JSON file; `python -m pydoc loadwise.balance.files` describes the form",
    )
    source.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="a running cluster; it is only read")
    source.add_argument(
        "--interval",
        dest="interval_s",
        type=at_least(0.1),
        metavar="SECONDS",
        help="with --bootstrap-servers: bytes in are those of so many seconds; 10",
    )
    source.add_argument(
        "--reads",
        type=at_least(0.0),
        metavar="NUMBER",
        help="with --bootstrap-servers: how many consumer groups read each record, for the bytes out; 1",
    )
    add_command_config(source, "with --bootstrap-servers: ")
    source.add_argument(
        "--capacities",
        type=Path,
        metavar="FILE",
        help='what brokers may carry at most, as JSON: {"1": {"disk_bytes": 5e11, "bytes_in_per_s": 1e8}}. A'
        " broker with a capacity of 0 is emptied",
    )
    source.add_argument(
        "--save", type=Path, metavar="FILE", help="write the cluster as a CLUSTER file, to be planned again elsewhere"
    )
    shown = parser.add_argument_group("the plan")
    shown.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help=f"write {REASSIGNMENT} and {ELECTION} for Kafka's tools there; one that the plan does not need is removed",
    )
    shown.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page too: the table, and a picture of each resource"
    )
    shown.add_argument("--json", dest="as_json", action="store_true", help="print JSON instead of the table")


def run(options: argparse.Namespace) -> int:
    """Plan; the status is 2 for wrong input, and 1 where a cluster cannot be read or there is no plan."""
    try:
        plan = _plan(options)
        if options.out is not None:
            _write(options.out, plan)
        if options.html is not None:
            write_page(options.html, partial(render, plan), UnfitClusterError)
    except (BalanceError, RunningGroupError, MissingClientError) as error:
        sys.stderr.write(f"loadwise balance: {error}\n")
        return 2 if isinstance(error, UnfitClusterError | BadConnectionError) else 1
    server = options.bootstrap_servers or "HOST:PORT"
    lines = [json.dumps(_as_json(plan))] if options.as_json else _report(plan, options.out, server)
    if options.html is not None and not options.as_json:
        lines += ["", f"The pictures: {options.html.resolve()}"]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    path: Path | None = options.cluster
    capacities: Path | None = options.capacities
    stated = {} if capacities is None else read_capacities(read_text(capacities, UnfitClusterError), str(capacities))
    if (path is None) == (options.bootstrap_servers is None):
        raise UnfitClusterError(f"{'no cluster' if path is None else 'two clusters'} given; {_SOURCES}")
    if path is not None:
        if (options.interval_s, options.reads, options.command_config) != (None, None, None):
            raise UnfitClusterError("--interval, --reads and --command-config need --bootstrap-servers")
        cluster = read_cluster(read_text(path, UnfitClusterError), str(path)).with_capacities(stated)
        _save(options.save, cluster)
        with waiting("planning"):
            return plan_of(cluster)
    from loadwise.running_group.admin import connected

    with connected(
        options.bootstrap_servers, read_settings(options.command_config), client_id="loadwise-balance"
    ) as admin:
        from loadwise.balance import live

        with waiting("reading the cluster"):
            reads = _READS if options.reads is None else options.reads
            read = live.read_cluster(admin, over_s=options.interval_s or _INTERVAL_S, reads=reads)
        cluster = read.with_capacities(stated)
        _save(options.save, cluster)
        with waiting("planning"):
            plan = plan_of(cluster)
        live.check_unchanged(admin, read)
    return plan


def _report(plan: Plan, out: Path | None, server: str) -> list[str]:
    lines = [about(plan), "", *aligned([HEADS, *rows(plan)]), "", summary(plan), *notes(plan)]
    if out is not None:
        lines += ["", *_commands(plan, out, server)]
    return lines


def _commands(plan: Plan, out: Path, server: str) -> list[str]:
    """How Kafka's tools execute the plan."""
    reassign = (
        f"  kafka-reassign-partitions.sh --bootstrap-server {server} --reassignment-json-file {out / REASSIGNMENT}"
    )
    elect = (
        f"  kafka-leader-election.sh --bootstrap-server {server} --election-type preferred --path-to-json-file"
        f" {out / ELECTION}"
    )
    moves = [f"{reassign} --execute", f"{reassign} --verify  # until all are complete"] if plan.reassigned else []
    return [*moves, *([elect] if plan.elected else [])]


def _save(path: Path | None, cluster: Cluster) -> None:
    if path is not None:
        try:
            path.write_text(written(cluster), encoding="utf-8")
        except OSError as error:
            raise UnfitClusterError(f"--save {path} cannot be written: {error.strerror}") from error


def _write(folder: Path, plan: Plan) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in ((REASSIGNMENT, reassignment(plan)), (ELECTION, leader_election(plan))):
            if content["partitions"]:
                (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
            else:  # Kafka's tools refuse an empty file, and would execute that of an earlier plan
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UnfitClusterError(f"--out {folder} cannot be written: {error.strerror}") from error


def _as_json(plan: Plan) -> dict[str, Any]:
    fields = ("bytes_in_per_s", "bytes_out_per_s", "disk_bytes")
    return {
        "brokers": [
            {
                "id": broker.id,
                "before": dict(zip(fields, before, strict=True)),
                "after": dict(zip(fields, after, strict=True)),
            }
            for broker, before, after in zip(
                plan.cluster.brokers, plan.before.tolist(), plan.after.tolist(), strict=True
            )
        ],
        "moved_bytes": plan.moved_bytes,
        "reassignment": reassignment(plan),
        "leader_election": leader_election(plan),
        "notes": list(notes(plan)),
    }
