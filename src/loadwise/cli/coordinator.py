"""``loadwise coordinator``: the group coordinator as a program of its own."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from loadwise.coordinator import Coordinator


def coordinator(
    *,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address to listen on; port 0 takes a free one.")
    ] = "127.0.0.1:0",
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:PARTITIONS", help="Make this topic at the start; may be given many times."),
    ] = None,
    brokers: Annotated[int, typer.Option(min=1, help="How many brokers, each on a port of its own.")] = 1,
    rack: Annotated[
        list[str] | None, typer.Option(help="A rack; may be given many times, dealt out to the brokers in a circle.")
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen on an address that other machines can reach.")
    ] = False,
    advertise: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Address that clients are told, if it is another.")
    ] = None,
    initial_rebalance_delay_ms: Annotated[
        int, typer.Option(min=0, help="How long an empty group waits for more members after the first.")
    ] = 0,
    auto_create_topics: Annotated[bool, typer.Option(help="Whether asking for a topic makes it.")] = True,
) -> None:
    """Start a Kafka group coordinator for tests and demos: everything in memory, no security.

    Prints one line with its addresses when clients can connect, and runs until SIGTERM or Ctrl-C.
    """
    try:
        from loadwise.coordinator import BrokerSettings, Coordinator, CoordinatorError, GroupLimits, NotLoopbackError
    except ImportError as missing:
        typer.echo(f"loadwise coordinator: {missing}", err=True)
        raise typer.Exit(1) from None

    host, port = _address(listen, "--listen")
    advertised_host, advertised_port = (None, None) if advertise is None else _address(advertise, "--advertise")
    try:
        broker = Coordinator(
            dict(_topic(each) for each in topic or ()),
            brokers=brokers,
            racks=rack or (),
            host=host,
            port=port,
            allow_remote=allow_remote,
            advertised_host=advertised_host,
            advertised_port=advertised_port,
            settings=BrokerSettings(
                auto_create_topics=auto_create_topics,
                groups=GroupLimits(initial_rebalance_delay_ms=initial_rebalance_delay_ms),
            ),
        )
        asyncio.run(_serve(broker))
    except NotLoopbackError as problem:
        message = f"other machines can reach {host}, and there is no authentication: give --allow-remote too"
        raise typer.BadParameter(message, param_hint="--listen") from problem
    except (CoordinatorError, OSError) as problem:
        typer.echo(f"loadwise coordinator: {problem}", err=True)
        raise typer.Exit(1) from problem


async def _serve(broker: Coordinator) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with broker:
        typer.echo(f"loadwise coordinator ready at {broker.bootstrap_servers}")
        await stopping.wait()


def _address(text: str, option: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter(f"{text!r} is no HOST:PORT", param_hint=option)
    return host.strip("[]"), int(port)


def _topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.rpartition(":")
    if not colon or not name or not partitions.isdecimal():
        raise typer.BadParameter(f"{text!r} is no NAME:PARTITIONS", param_hint="--topic")
    return name, int(partitions)
