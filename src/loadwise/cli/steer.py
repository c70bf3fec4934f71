"""``loadwise steer``: plans by load for a consumer group whose broker has the assignor ``loadwise`` (KIP-848)."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING

from loadwise.assignor.errors import BadGroupError, MissingClientError
from loadwise.cli.parser import Parser, add_command_config
from loadwise.cli.text_files import read_settings
from loadwise.cli.uncommitted import add_uncommitted
from loadwise.compare.situation import Uncommitted
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse

DESCRIPTION = """Steer a group by its load: members in Java, C#, Go or any language get the plans of `weighted`.

The brokers need the assignor `loadwise` (a jar), and the group the consumer protocol (group.protocol=consumer); its
members stay as they are. The command reads the group as `loadwise watch` does, and joins it with members that own
nothing and carry the plan. It waits while the group is a classic one, or has no members."""
EPILOG = """examples:
  loadwise steer --bootstrap-servers broker:9092 --group billing --dry-run
  loadwise steer --bootstrap-servers broker:9092 --group billing"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    where = parser.add_argument_group("the group")
    where.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="the Kafka of the group")
    where.add_argument("--group", required=True, metavar="ID", help="the group to steer")
    add_uncommitted(where)
    add_command_config(where)
    how = parser.add_argument_group("how")
    how.add_argument("--dry-run", action="store_true", help="log what would be done, and send no plan")


def run(options: argparse.Namespace) -> int:
    """Steer until Ctrl-C or SIGTERM; the status is 2 for a wrong connection, 1 where the group cannot be steered."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stdout)
    logging.getLogger("kafka").setLevel(logging.ERROR)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        settings = read_settings(options.command_config)
        from loadwise.assignor.live.settings import LiveSettings
        from loadwise.running_group.admin import connected
        from loadwise.steer.steering import Steering

        with connected(options.bootstrap_servers, settings, client_id="loadwise-steer") as admin:
            Steering(
                admin,
                options.group,
                settings=LiveSettings(dry_run=options.dry_run),
                from_beginning=options.uncommitted is Uncommitted.EARLIEST,
            ).run(stop)
    except (RunningGroupError, MissingClientError, BadGroupError) as error:
        sys.stderr.write(f"loadwise steer: {error}\n")
        return 2 if isinstance(error, BadConnectionError) else 1
    return 0
