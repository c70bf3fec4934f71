"""``loadwise live``: switch a group's rebalances for the load off and on, without a deployment."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from loadwise.assignor.errors import MissingClientError
from loadwise.cli.parser import Parser, add_command_config, one_of
from loadwise.cli.text_files import read_settings
from loadwise.running_group.errors import BadConnectionError, RunningGroupError

if TYPE_CHECKING:
    import argparse

_STATES = ("off", "on", "status")

DESCRIPTION = """Switch a group's rebalances for the load off or on, or show whether they are off.

The leader reads the switch every 30 seconds, and the switch survives leaders and restarts. It is a commit in the group
GROUP.loadwise, which has no members. The leader and this command need the right to READ that group."""
EPILOG = """examples:
  loadwise live off --bootstrap-servers broker:9092 --group billing
  loadwise live status --bootstrap-servers broker:9092 --group billing"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument("state", type=one_of(_STATES), choices=_STATES, help="off, on or status")
    where = parser.add_argument_group("the group")
    where.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="a broker of the cluster")
    where.add_argument("--group", required=True, metavar="ID", help="the consumer group")
    add_command_config(where)


def run(options: argparse.Namespace) -> int:
    """Switch, and print the state; the status is 2 for a wrong connection, and 1 where the group cannot be read."""
    try:
        settings = read_settings(options.command_config)
        from loadwise.running_group.admin import connected
        from loadwise.running_group.live_switch import not_read, write_switch
        from loadwise.running_group.reading import read_switch

        with connected(options.bootstrap_servers, settings, client_id="loadwise-live") as admin:
            if options.state == "status":
                switch = read_switch(admin, options.group)
            else:
                now_ms = round(time.time() * 1000)
                switch = write_switch(admin, options.group, off=options.state == "off", now_ms=now_ms)
            why_not = not_read(admin, options.group)
    except (RunningGroupError, MissingClientError) as error:
        sys.stderr.write(f"loadwise live: {error}\n")
        return 2 if isinstance(error, BadConnectionError) else 1
    note = f", but no member reads this: {why_not}" if why_not else ""
    sys.stdout.write(f"{options.group}: {switch or 'rebalances for the load are on'}{note}\n")
    return 0
