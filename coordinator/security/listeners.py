"""Finds the listener for clients in a Kafka's server.properties. Pure.

A coordinator has one listener for clients. Listeners of controllers are ignored, and so is the inter-broker listener if
there is another. Of the rest, the first counts. Mirrors Kafka's ``SocketServerConfigs.listenerListToEndPoints``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from loadwise.coordinator.errors import BadSettingError

LISTENERS = "listeners"
ADVERTISED = "advertised.listeners"
_CONTROLLERS = "controller.listener.names"
_BROKERS = "inter.broker.listener.name"
_PROTOCOLS = "listener.security.protocol.map"
NAMES = (LISTENERS, ADVERTISED, _CONTROLLERS, _BROKERS, _PROTOCOLS)
"""The settings about listeners."""

_LISTENER = re.compile(r"([^:/]+)://(.*):(-?[0-9]+)")
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener."""

    name: str
    protocol: str
    """As in ``security.protocol``."""
    host: str
    """Empty: every address of the machine."""
    port: int
    advertised: tuple[str, int] | None = None
    """The address that clients get; None: its own."""


def client_listener(configs: Mapping[str, str]) -> Listener | None:
    """Return the listener that clients connect to; None without the setting ``listeners``.

    Raises `BadSettingError` if a listener is not valid or has no protocol, or if all are for controllers.
    """
    if LISTENERS not in configs:
        return None
    _check_distinct(configs)
    protocols = _protocols(configs.get(_PROTOCOLS, ""))
    controllers = {each.upper() for each in _items(configs.get(_CONTROLLERS, ""))}
    of_brokers = configs.get(_BROKERS, "").strip().upper()
    advertised = {name: (host, port) for name, host, port in _addresses(configs, ADVERTISED)}
    found = [each for each in _addresses(configs, LISTENERS) if each[0] not in controllers]
    chosen = next((each for each in found if each[0] != of_brokers), found[0] if found else None)
    if chosen is None:
        raise BadSettingError(f"listeners is {configs[LISTENERS]!r}; it needs a listener for clients")
    name, host, port = chosen
    protocol = protocols.get(name) if protocols else name
    if protocol is None:
        raise BadSettingError(f"{_PROTOCOLS} has no protocol for the listener {name}; add {name}:PLAINTEXT")
    return Listener(name, protocol, host, port, advertised.get(name))


def _check_distinct(configs: Mapping[str, str]) -> None:
    """Raise `BadSettingError` if two listeners share a name or a port.

    One for IPv4 and one for IPv6 may share a port.
    """
    for setting in (LISTENERS, ADVERTISED):
        found = _addresses(configs, setting)
        for index, (name, host, port) in enumerate(found):
            for other, its_host, its_port in found[:index]:
                if other == name:
                    raise BadSettingError(f"{setting}: the name {name} is used twice")
                is_pair = {_ip_version(host), _ip_version(its_host)} == {4, 6}
                if setting == LISTENERS and port == its_port != 0 and not is_pair:
                    raise BadSettingError(f"{setting}: the port {port} is used twice")


def _ip_version(host: str) -> int | None:
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return None


def _addresses(configs: Mapping[str, str], setting: str) -> list[tuple[str, str, int]]:
    found = []
    for each in _items(configs.get(setting, "")):
        match = _LISTENER.fullmatch(each)
        if match is None or not 0 <= int(match[3]) <= _LAST_PORT:
            raise BadSettingError(f"{setting}: {each!r} is not a listener; write PLAINTEXT://127.0.0.1:9092")
        found.append((match[1].upper(), match[2].strip("[]"), int(match[3])))
    return found


def _protocols(text: str) -> dict[str, str]:
    pairs = [each.partition(":") for each in _items(text)]
    for name, colon, protocol in pairs:
        if not (name and colon and protocol):
            raise BadSettingError(f"{_PROTOCOLS} is {text!r}; it must be a list of listener:protocol")
    return {name.strip().upper(): protocol.strip().upper() for name, _, protocol in pairs}


def _items(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
