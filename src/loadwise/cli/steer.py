"""``loadwise steer``: plans by load for a consumer group whose broker has the assignor ``loadwise`` (KIP-848)."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadwise.assignor.errors import BadGroupError, MissingClientError
from loadwise.cli.parser import Parser, add_command_config, whole_number
from loadwise.cli.text_files import read_settings
from loadwise.cli.uncommitted import add_uncommitted
from loadwise.compare.situation import Uncommitted
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse

    from loadwise.assignor.live.decision import Decision
    from loadwise.running_group.admin import GroupAdmin
    from loadwise.running_group.members import GroupReading
    from loadwise.steer.steering import Steering

DESCRIPTION = """Steer a group by its load: members in Java, C#, Go or any language get the plans of `weighted`.

The brokers need the assignor `loadwise` (a jar), and the group needs the consumer protocol (group.protocol=consumer).
Its members stay as they are. The command reads the group as `loadwise watch` does, and joins it with members that own
nothing and carry the plan. It waits while the group is a classic one, or has no members."""
EPILOG = """examples:
  loadwise steer --bootstrap-servers broker:9092 --group billing --dry-run
  loadwise steer --bootstrap-servers broker:9092 --group billing"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    where = parser.add_argument_group("the group")
    where.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="a broker of the cluster")
    where.add_argument("--group", required=True, metavar="ID", help="the group to steer")
    add_uncommitted(where)
    add_command_config(where)
    how = parser.add_argument_group("how")
    how.add_argument(
        "--votes",
        type=whole_number(least=1),
        default=1,
        metavar="NUMBER",
        help="join with this number of members, which outvotes fewer members that name another assignor (franz-go)",
    )
    out = parser.add_argument_group("output")
    out.add_argument(
        "--json", dest="as_json", action="store_true", help="print a JSON object for each reading; logs go to stderr"
    )
    out.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="when it ends, write the latest readings and decisions for `loadwise replay`",
    )
    out.add_argument("--metrics-port", type=whole_number(least=1), metavar="PORT", help="serve Prometheus metrics")
    how.add_argument("--dry-run", action="store_true", help="only log what would be done; send no plan")


def run(options: argparse.Namespace) -> int:
    """Steer until Ctrl-C or SIGTERM; the status is 2 for a wrong connection, 1 if the group cannot be steered."""
    logs = sys.stderr if options.as_json else sys.stdout
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=logs)
    logging.getLogger("kafka").setLevel(logging.ERROR)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = read_settings(options.command_config)
        from loadwise.assignor.live.settings import LiveSettings
        from loadwise.running_group.admin import connected
        from loadwise.steer.steering import Steering

        from_beginning = options.uncommitted is Uncommitted.EARLIEST
        with ExitStack() as stack:
            admin = stack.enter_context(connected(options.bootstrap_servers, settings, client_id="loadwise-steer"))
            steering = Steering(
                admin,
                options.group,
                settings=LiveSettings(dry_run=options.dry_run),
                from_beginning=from_beginning,
                votes=options.votes,
                on_reading=_json_lines(admin, from_beginning=from_beginning) if options.as_json else None,
            )
            if options.metrics_port is not None:
                _serve_metrics(steering, options.metrics_port)
            if options.history is not None:
                stack.callback(lambda: steering.history().save(options.history))
            steering.run(stop)
    except (RunningGroupError, MissingClientError, BadGroupError) as error:
        sys.stderr.write(f"loadwise steer: {error}\n")
        return 2 if isinstance(error, BadConnectionError) else 1
    except OSError as error:
        sys.stderr.write(f"loadwise steer: {error}\n")
        return 2
    return 0


def _json_lines(admin: GroupAdmin, *, from_beginning: bool) -> Callable[[GroupReading, Decision | None], None]:
    """Return what prints a reading as `loadwise watch --json` does, with the decision about it."""
    from loadwise.cli.watch import WINDOW_S
    from loadwise.running_group.reading import read_retention_ms
    from loadwise.watch.as_json import as_json
    from loadwise.watch.recent import Recent

    recent = Recent(partial(read_retention_ms, admin), from_beginning=from_beginning, window_s=WINDOW_S)

    def show(reading: GroupReading, decision: Decision | None) -> None:
        now, verdict = recent.after(reading)
        line = as_json(now, verdict, None)
        line |= {"decision": None if decision is None else str(decision), "asks": decision is not None and decision.ask}
        sys.stdout.write(json.dumps(line, allow_nan=False) + "\n")
        sys.stdout.flush()

    return show


def _serve_metrics(steering: Steering, port: int) -> None:
    from loadwise.steer.prometheus import SteeringCollector  # names the extra, if it is missing

    from prometheus_client import CollectorRegistry, start_http_server  # isort: skip

    registry = CollectorRegistry()
    registry.register(SteeringCollector(steering))
    start_http_server(port, registry=registry)
