"""``loadwise watch``: a running group of any client and either protocol, live in the terminal."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.errors import MissingClientError
from loadwise.cli.console import console
from loadwise.cli.parser import Parser, add_command_config, at_least, whole_number
from loadwise.cli.progress import waiting
from loadwise.cli.text_files import read_settings
from loadwise.cli.uncommitted import add_uncommitted
from loadwise.compare.situation import Uncommitted
from loadwise.installation import is_installed, pip_install
from loadwise.running_group.errors import BadConnectionError, RunningGroupError, UnreadableGroupError
from loadwise.watch.columns import COLUMNS, Column

if TYPE_CHECKING:
    import argparse

    from loadwise.compare.comparison import Comparison
    from loadwise.running_group.admin import GroupAdmin
    from loadwise.running_group.members import GroupReading
    from loadwise.watch.status import GroupStatus
    from loadwise.watch.verdict import Verdict


def _short(column: Column) -> str:
    return f" ({column.short!r} on a narrow screen)" if column.short else ""


WINDOW_S = 30.0  # over which rates are measured by default
DESCRIPTION = """Watch a group: which members fall behind, which have capacity left, whether the group is large enough.

The group may use any client, and either protocol. It is only read. The utilisation of a member is known only while it
has a backlog, because only then it shows what it can process. If the group cannot be read for a while, for example
while brokers restart, the command reports this and continues."""
EPILOG = f"""columns:
{chr(10).join(f"  {each.name or '(bar)':11}  {each.meaning}{_short(each)}" for each in COLUMNS)}

examples:
  loadwise watch --bootstrap-servers broker:9092 --group billing
  loadwise watch --bootstrap-servers broker:9092 --group billing --readings 2 --json"""


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    where = parser.add_argument_group("the group")
    where.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT", help="a broker of the cluster")
    where.add_argument("--group", required=True, metavar="ID", help="the group to watch; it is only read")
    add_uncommitted(where)
    add_command_config(where)
    pace = parser.add_argument_group("pace and output")
    pace.add_argument(
        "--interval",
        dest="interval_s",
        type=at_least(0.1),
        metavar="SECONDS",
        default=5.0,
        help="time between two readings",
    )
    pace.add_argument(
        "--window",
        dest="window_s",
        type=at_least(0.1),
        metavar="SECONDS",
        default=WINDOW_S,
        help="the time over which rates are measured; must be longer than the consumers' auto.commit.interval.ms",
    )
    pace.add_argument(
        "--readings",
        type=whole_number(least=1),
        metavar="NUMBER",
        help="stop after this number of readings (default: run until Ctrl-C)",
    )
    pace.add_argument("--json", dest="as_json", action="store_true", help="print one JSON object per reading")


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C; the status is 2 for a wrong connection, and 1 where the group cannot be read."""
    try:
        settings = read_settings(options.command_config)
        display = _display(as_json=options.as_json)
        from loadwise.running_group.admin import connected

        with ExitStack() as stack:
            with waiting(f"connecting to {options.bootstrap_servers}"):
                admin = stack.enter_context(connected(options.bootstrap_servers, settings, client_id="loadwise-watch"))
            _watch(admin, stack.enter_context(display), options)
    except (RunningGroupError, MissingClientError) as error:
        sys.stderr.write(f"loadwise watch: {error}\n")
        return 2 if isinstance(error, BadConnectionError) else 1
    except KeyboardInterrupt:
        return 0
    return 0


def _watch(admin: GroupAdmin, display: Display, options: argparse.Namespace) -> None:
    from loadwise.running_group.reading import read, read_retention_ms
    from loadwise.watch.recent import Recent

    from_beginning = options.uncommitted is Uncommitted.EARLIEST
    recent = Recent(partial(read_retention_ms, admin), from_beginning=from_beginning, window_s=options.window_s)
    for count in itertools.count(1):
        begun_s = time.monotonic()
        try:
            newest = read(admin, options.group)
        except UnreadableGroupError as error:
            if not recent.readings:
                raise
            # Brokers and members are restarted, and a watch outlives that.
            display.fail(f"loadwise watch: {error}")
        else:
            now, verdict = recent.after(newest)
            display.show(now, verdict, _compared(recent.readings, now, from_beginning=from_beginning))
        if count == options.readings:
            return
        time.sleep(max(options.interval_s - (time.monotonic() - begun_s), 0.0))


class Display(NamedTuple):
    """How a reading is shown, and why one failed."""

    show: Callable[[GroupStatus, Verdict, Comparison | None], None]
    fail: Callable[[str], None]


def _failed(text: str) -> None:
    sys.stderr.write(text + "\n")


def _json_line(status: GroupStatus, verdict: Verdict, comparison: Comparison | None) -> None:
    from loadwise.watch.as_json import as_json

    sys.stdout.write(json.dumps(as_json(status, verdict, comparison), allow_nan=False) + "\n")
    sys.stdout.flush()


def _display(*, as_json: bool) -> AbstractContextManager[Display]:
    """Where readings are shown. Raises `MissingClientError` without rich."""
    if as_json:
        return nullcontext(Display(_json_line, _failed))
    if not is_installed("rich"):
        remedy = f"get it with: {pip_install('cli')}; or give --json"
        raise MissingClientError(f"the screen needs rich, which is not installed; {remedy}")
    return _printed()


@contextmanager
def _printed() -> Iterator[Display]:
    """Each reading in the place of the last one on a terminal, below it in a pipe or a log."""
    from rich.live import Live

    from loadwise.watch.screen import shown

    printed = console()

    def below_the_last(status: GroupStatus, verdict: Verdict, comparison: Comparison | None) -> None:
        printed.print(shown(status, verdict, comparison, printed.width))
        printed.print()

    if not sys.stdout.isatty():
        yield Display(below_the_last, _failed)
        return
    with Live(console=printed, auto_refresh=False) as live:

        def in_its_place(status: GroupStatus, verdict: Verdict, comparison: Comparison | None) -> None:
            live.update(shown(status, verdict, comparison, printed.width), refresh=True)

        yield Display(in_its_place, lambda text: printed.print(text, style="yellow", markup=False))


def _compared(seen: Sequence[GroupReading], now: GroupStatus, *, from_beginning: bool) -> Comparison | None:
    """Compare the assignors under the demand of the group; None while rates are unknown."""
    from loadwise.compare.comparison import compare
    from loadwise.watch.demand import situation

    asked = situation(seen, window_s=now.window_s, from_beginning=from_beginning)
    return None if asked is None else compare(asked, tuple(ALGORITHMS), time.perf_counter)
