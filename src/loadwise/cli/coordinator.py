"""``loadwise coordinator``: the group coordinator as a program of its own.

Tests in other languages start it for every test, and wait until it is ready: what takes long to import stays out.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from loadwise.cli.parser import Parser, whole_number
from loadwise.cli.text_files import read_text

if TYPE_CHECKING:
    from loadwise.coordinator import Coordinator, HttpOptions
    from loadwise.coordinator.security.listeners import Listener

DESCRIPTION = """Start a Kafka coordinator for tests and demos. Without --data-dir, data is kept in memory only.

It prints one line with its addresses when clients can connect, and runs until SIGTERM or Ctrl-C."""
EPILOG = """examples:
  loadwise coordinator --topic orders:3
  loadwise coordinator --listen 127.0.0.1:9092 --brokers 3 --rack a --rack b --rack c
  loadwise coordinator --topic orders:3 --view
  loadwise coordinator --config group.initial.rebalance.delay.ms=0 --data-dir ./data"""

_LOOPBACK = "127.0.0.1"
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104  (where others may reach it)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it; the status is 1 if it cannot serve, and 2 if the options are wrong."""
    gc.disable()  # until clients can connect: imports make no garbage, and collections take a twentieth of the time
    try:
        return _run(options)
    finally:
        gc.enable()


def _run(options: argparse.Namespace) -> int:
    try:
        from loadwise.coordinator import (
            BrokerSettings,
            Coordinator,
            CoordinatorError,
            GroupLimits,
            HttpOptions,
        )
        from loadwise.coordinator.embedding.loops import run as run_loop
        from loadwise.coordinator.security.broker_configs import security_of
        from loadwise.coordinator.security.listeners import NAMES as LISTENER_SETTINGS
        from loadwise.coordinator.security.listeners import client_listener
        from loadwise.coordinator.settings import configured
    except ImportError as missing:
        _fail(missing)

    if options.log_format is not None:
        _log_to_stderr(as_json=options.log_format == "json")
    advertised_host, advertised_port = options.advertise or (None, None)
    try:
        token = os.environ.get("LOADWISE_HTTP_TOKEN") or None
        http = None
        if options.http or options.view:
            http_host, http_port = options.http or ("127.0.0.1", 0)
            http = HttpOptions(host=http_host, port=http_port, token=token, open_view=options.view)
        configs = {} if options.config_file is None else _configs_of(options.config_file)
        security, configs = security_of({**configs, **dict(options.config)})
        listener = client_listener(configs)
        if listener is not None and options.listen is None:
            listen = _address_of(listener, allow_remote=options.allow_remote)
            if options.allow_remote and options.advertise is None:
                advertised_host, advertised_port = listener.advertised or (None, None)
            configs = {name: value for name, value in configs.items() if name not in LISTENER_SETTINGS}
        else:
            listen = options.listen or (_LOOPBACK, 0)
        broker = Coordinator(
            dict(options.topic),
            brokers=options.brokers,
            racks=options.rack,
            host=listen[0],
            port=listen[1],
            allow_remote=options.allow_remote,
            advertised_host=advertised_host,
            advertised_port=advertised_port,
            settings=configured(
                BrokerSettings(
                    auto_create_topics=options.auto_create_topics,
                    max_kept_bytes=options.max_kept_bytes,
                    groups=GroupLimits(initial_rebalance_delay_ms=options.initial_rebalance_delay_ms),
                ),
                configs,
            ),
            security=security,
            http=http,
            data_dir=options.data_dir,
            accept_data_loss=options.accept_data_loss,
        )
        run_loop(_serve(broker, http, shows_token=token is None))
    except (CoordinatorError, OSError) as problem:
        _fail(problem, 2 if isinstance(problem, ValueError) else 1)
    return 0


def _configs_of(file: Path) -> dict[str, str]:
    from loadwise.coordinator.security.broker_configs import is_about_security
    from loadwise.coordinator.settings import is_known, nearest_setting
    from loadwise.running_group.command_config import numbered_properties
    from loadwise.running_group.errors import BadConnectionError

    configs = {}
    try:
        for line, name, value in numbered_properties(read_text(file, BadConnectionError), str(file)):
            if not is_known(name) and not is_about_security(name):
                raise BadConnectionError(f"{file}, line {line}: Kafka has no setting {name}{nearest_setting(name)}")
            configs[name] = value
    except BadConnectionError as problem:
        _fail(problem, 2)
    return configs


def _address_of(listener: Listener, *, allow_remote: bool) -> tuple[str, int]:
    """Where to listen for a listener of Kafka's: on loopback, unless others may reach it."""
    if not allow_remote:
        return _LOOPBACK, listener.port
    return listener.host or _EVERY_ADDRESS, listener.port


def _fail(problem: Exception, status: int = 1) -> NoReturn:
    reason = str(problem)
    if isinstance(problem, OSError) and problem.strerror and problem.filename is None:
        reason = problem.strerror  # without Python's "[Errno 98]"
    sys.stderr.write(f"loadwise coordinator: {reason}\n".replace("allow_remote=True", "--allow-remote"))
    sys.exit(status)


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add = parser.add_argument_group("where it listens").add_argument
    add(
        "--listen",
        type=_address,
        metavar="HOST:PORT",
        help="the address to listen on; port 0 means any free port (default: 127.0.0.1, with the port of the client"
        " listener in --config-file, or else a free port)",
    )
    add("--allow-remote", action="store_true", help="allow addresses that other machines can reach")
    add(
        "--advertise",
        type=_address,
        metavar="HOST:PORT",
        help="the address that clients are told, if it is different; port 0 means the port that it listens on",
    )
    add = parser.add_argument_group("the cluster").add_argument
    add(
        "--topic",
        type=_topic,
        metavar="NAME:PARTITIONS",
        action="append",
        default=[],
        help="create this topic at the start; may be repeated",
    )
    add(
        "--brokers",
        type=whole_number(least=1),
        metavar="N",
        default=1,
        help="the number of brokers, each on its own port",
    )
    add(
        "--rack",
        action="append",
        default=[],
        help="a rack; may be repeated. Brokers are assigned to the racks in turn",
    )
    add(
        "--auto-create-topics",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether a topic is created when a client asks for it",
    )
    add(
        "--initial-rebalance-delay-ms",
        type=whole_number(least=0),
        metavar="MS",
        default=0,
        help="how long an empty group waits for more members after the first one has joined",
    )
    add = parser.add_argument_group("records and state").add_argument
    add(
        "--max-kept-bytes",
        type=whole_number(least=1),
        metavar="BYTES",
        default=1024 * 1024 * 1024,
        help="the maximum size of all records together; producing more is refused",
    )
    add(
        "--data-dir",
        metavar="PATH",
        help="keep topics, configs, groups, commits, transactions and records in this directory, so that they survive"
        " a restart; without it, data is kept in memory only",
    )
    add(
        "--accept-data-loss",
        action="store_true",
        help="start even if the --data-dir has lost acknowledged writes",
    )
    add = parser.add_argument_group("settings under Kafka's names").add_argument
    add(
        "--config",
        type=_config,
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a broker setting, such as log.retention.ms=60000; may be repeated. It takes precedence over the"
        " corresponding option",
    )
    add(
        "--config-file",
        type=Path,
        metavar="FILE",
        help="a file with such settings, in the format of Kafka's server.properties. Use it for passwords, because"
        " other users can see a command line. --config takes precedence",
    )
    add = parser.add_argument_group("control and logs").add_argument
    add(
        "--http",
        type=_address,
        metavar="HOST:PORT",
        help="serve HTTP for control, with the token in LOADWISE_HTTP_TOKEN, or else a random one that is printed",
    )
    add(
        "--view", action="store_true", help="serve a live page of all groups, which every user of this machine can read"
    )
    add(
        "--log-format",
        choices=("text", "json"),
        help="log group transitions and closed connections to standard error, as text or with one JSON object per line",
    )


async def _serve(broker: Coordinator, http: HttpOptions | None, *, shows_token: bool) -> None:
    stopping = asyncio.Event()
    set_on_signals(asyncio.get_running_loop(), stopping)
    async with broker:
        gc.freeze()  # imported modules stay: a collection that walks it keeps all clients waiting for 40 ms
        # A collection of the young takes 1 ms for 10,000 objects, and a full one of 27,000 topics 90 ms: rarely.
        gc.set_threshold(1_000, 10, 10_000)
        gc.enable()
        sys.stdout.write(f"loadwise coordinator ready at {broker.bootstrap_servers}\n")
        if http is not None:
            token = f", token {broker.http_token}" if shows_token else ""
            sys.stdout.write(f"loadwise coordinator HTTP at {broker.http_url}{token}\n")
        sys.stdout.flush()
        ways_to_end = (asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(broker.failed()))
        await asyncio.wait(ways_to_end, return_when=asyncio.FIRST_COMPLETED)
        told_to_end, failed = ways_to_end
        if failed.done():
            told_to_end.cancel()
            raise failed.result()
        failed.cancel()


def set_on_signals(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    """Set an event when the program is to end: SIGTERM, or Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stopping.set)
        except NotImplementedError:  # the loops of Windows have none
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopping.set))


def _log_to_stderr(*, as_json: bool) -> None:
    from loadwise.cli.json_lines import JsonLines

    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger("loadwise")
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.rpartition(":")
    if not colon or not name or not partitions.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:PARTITIONS")
    return name, int(partitions)


def _config(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()
