"""``loadwise balance``: plan leader changes and replica moves that even out the brokers of a cluster."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadwise.assignor.errors import MissingClientError
from loadwise.balance.errors import BalanceError, UnfitClusterError
from loadwise.balance.files import read_capacities, read_cluster, written
from loadwise.balance.following import read_steps
from loadwise.balance.kafka_files import (
    PATTERN,
    election_file,
    files,
    leader_election,
    reassignment,
    reassignment_file,
)
from loadwise.balance.page import render
from loadwise.balance.plan import plan as plan_of
from loadwise.balance.table import BATCH_HEADS, about, batch_rows, heads, notes, rows, summary
from loadwise.cli.balance_options import DESCRIPTION, EPILOG, add_options, scope_of
from loadwise.cli.progress import waiting
from loadwise.cli.tables import aligned
from loadwise.cli.text_files import read_settings, read_text, write_page
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from loadwise.balance.cluster import Capacity, Cluster
    from loadwise.balance.plan import Plan

__all__ = ["DESCRIPTION", "EPILOG", "add_options", "run"]

_SOURCES = "give a cluster file, or --bootstrap-servers"
_INTERVAL_S, _READS = 10.0, 1.0
_MOST_LINES, _MOST_BATCHES = 21, 5
"""Of the table of batches, and of batches whose commands are shown."""


def run(options: argparse.Namespace) -> int:
    """Plan, or follow; the status is 2 for wrong input, 1 for no plan, an unreadable cluster and a surprise."""
    try:
        if options.follow is not None:
            return _follow(options)
        plan = _plan(options)
        if options.out is not None:
            _write(options.out, plan)
        if options.html is not None:
            write_page(options.html, partial(render, plan), UnfitClusterError)
    except (BalanceError, RunningGroupError, MissingClientError) as error:
        sys.stderr.write(f"loadwise balance: {error}\n")
        return 2 if isinstance(error, UnfitClusterError | BadConnectionError) else 1
    lines = [json.dumps(_as_json(plan, options.throttle))] if options.as_json else _report(plan, options)
    if options.html is not None and not options.as_json:
        lines += ["", f"Charts: {options.html.resolve()}"]
    sys.stdout.write("\n".join([*lines, ""]))
    return 0


def _follow(options: argparse.Namespace) -> int:
    """Execute the batches of a folder, or of a plan that is made first."""
    if options.bootstrap_servers is None:
        raise UnfitClusterError("--follow needs --bootstrap-servers")
    if options.as_json:
        raise UnfitClusterError("--follow prints lines of progress; leave --json out")
    if options.follow:
        steps = read_steps(_texts(Path(options.follow)))
    else:
        plan = _plan(options)
        _say("\n".join(_report(plan, options)))
        if options.out is not None:
            _write(options.out, plan)
        steps = read_steps({name: json.dumps(content) for name, content in files(plan.schedule.batches).items()})
    from loadwise.running_group.admin import connected

    with (
        connected(
            options.bootstrap_servers, read_settings(options.command_config), client_id="loadwise-balance"
        ) as admin,
        _ended_by_sigterm(),
    ):
        from loadwise.balance.follow import Follower

        disks = {broker: options.headroom * each.disk_bytes for broker, each in _capacities(options).items()}
        Follower(admin, throttle_bytes_per_s=options.throttle, headroom_bytes=disks, show=_say).run(steps)
    _say("All batches are complete.")
    return 0


def _capacities(options: argparse.Namespace) -> dict[int, Capacity]:
    path: Path | None = options.capacities
    return {} if path is None else read_capacities(read_text(path, UnfitClusterError), str(path))


def _texts(folder: Path) -> dict[str, str]:
    paths = sorted(folder.glob(PATTERN))
    if not paths:
        raise UnfitClusterError(f"{folder} has no {PATTERN}; write a plan there with --out")
    return {path.name: read_text(path, UnfitClusterError) for path in paths}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that it can undo what it began."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _plan(options: argparse.Namespace) -> Plan:
    path: Path | None = options.cluster
    stated = _capacities(options)
    if (path is None) == (options.bootstrap_servers is None):
        raise UnfitClusterError(f"{'no cluster' if path is None else 'two clusters'} given; {_SOURCES}")
    if path is not None:
        if (options.interval_s, options.reads, options.command_config) != (None, None, None):
            raise UnfitClusterError("--interval, --reads and --command-config need --bootstrap-servers")
        cluster = read_cluster(read_text(path, UnfitClusterError), str(path)).with_capacities(stated)
        _save(options.save, cluster)
        return _planned(cluster, options)
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
        plan = _planned(cluster, options)
        live.check_unchanged(admin, read)
    return plan


def _planned(cluster: Cluster, options: argparse.Namespace) -> Plan:
    with waiting("planning"):
        return plan_of(cluster, scope_of(options), headroom=options.headroom, moves_per_broker=options.moves_per_broker)


def _report(plan: Plan, options: argparse.Namespace) -> list[str]:
    lines = [about(plan), "", *aligned([heads(plan), *rows(plan)]), "", summary(plan), *notes(plan)]
    if plan.schedule.batches:
        lines += ["", *_shortened([BATCH_HEADS, *batch_rows(plan, options.throttle)])]
        if options.throttle is None:
            lines.append("Times need --throttle.")
    if options.out is not None and plan.schedule.batches:
        lines += ["", *_commands(plan, options)]
    return lines


def _shortened(rows: Sequence[Sequence[str]]) -> list[str]:
    left_out = len(rows) - _MOST_LINES
    lines = aligned(rows[:_MOST_LINES])
    return lines if left_out <= 0 else [*lines, f"… and {left_out:,} more"]


def _commands(plan: Plan, options: argparse.Namespace) -> list[str]:
    """How Kafka's tools execute the batches."""
    server = options.bootstrap_servers or "HOST:PORT"
    throttle = "" if options.throttle is None else f" --throttle {options.throttle:.0f}"
    lines = ["Execute one batch after the other, the next one when --verify reports that all are complete:"]
    count = len(plan.schedule.batches)
    for number, batch in list(enumerate(plan.schedule.batches, start=1))[:_MOST_BATCHES]:
        path = options.out / reassignment_file(number, count)
        reassign = f"  kafka-reassign-partitions.sh --bootstrap-server {server} --reassignment-json-file {path}"
        if batch.reassigned:
            lines += [f"{reassign} --execute{throttle}", f"{reassign} --verify"]
        if batch.elected:
            lines.append(
                f"  kafka-leader-election.sh --bootstrap-server {server} --election-type preferred --path-to-json-file"
                f" {options.out / election_file(number, count)}"
            )
    if count > _MOST_BATCHES:
        lines.append(f"and so on to {options.out / reassignment_file(count, count)}")
    return lines


def _save(path: Path | None, cluster: Cluster) -> None:
    if path is not None:
        try:
            path.write_text(written(cluster), encoding="utf-8")
        except OSError as error:
            raise UnfitClusterError(f"--save {path} cannot be written: {error.strerror}") from error


def _write(folder: Path, plan: Plan) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in folder.glob(PATTERN):  # an earlier plan may have had more batches
            earlier.unlink()
        for name, content in files(plan.schedule.batches).items():
            (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UnfitClusterError(f"--out {folder} cannot be written: {error.strerror}") from error


def _as_json(plan: Plan, throttle: float | None) -> dict[str, Any]:
    names = ("bytes_in_per_s", "bytes_out_per_s", "disk_bytes", "peak_bytes_in_per_s", "peak_bytes_out_per_s")
    fields = names[: len(plan.cluster.resources)]
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
        "reassignment": reassignment(plan.reassigned),
        "leader_election": leader_election(plan.elected),
        "batches": [
            {
                "reassignment": reassignment(batch.reassigned),
                "leader_election": leader_election(batch.elected),
                "moved_bytes": batch.moved_bytes,
                "estimated_s": None if throttle is None else batch.estimated_s(throttle),
            }
            for batch in plan.schedule.batches
        ],
        "blocked": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "broker": each.broker,
                "missing_bytes": each.missing_bytes,
            }
            for each in plan.schedule.blocked
        ],
        "notes": list(notes(plan)),
    }
