"""Check the arguments of the consumer factories before anything connects; every error names the argument."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from loadwise.nearest import did_you_mean

CHOICES: Mapping[str, Collection[str]] = {
    "auto_offset_reset": ("earliest", "latest", "none"),
    "isolation_level": ("read_uncommitted", "read_committed"),
    "security_protocol": ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
}
"""The clients' own arguments with few values. The clients take another value for ``none``, or refuse it too late."""


def check_arguments(
    topics: Iterable[object], group_id: object, lag_interval_s: object, config: Mapping[str, Any]
) -> None:
    """Raise `TypeError` or `ValueError` for bad topics, a bad group id or interval, or an option that is set twice."""
    for topic in topics:
        if not isinstance(topic, str):
            raise TypeError(f"{topic!r} is not a topic; pass topic names as separate arguments, not as a list")
    if "partition_assignment_strategy" in config:
        raise TypeError("partition_assignment_strategy is replaced by `assignor`; give one of them")
    if not isinstance(group_id, str):
        raise TypeError(f"group_id is {group_id!r}; it must be the name of the group that the members share")
    if not group_id:
        raise ValueError("group_id is empty; it must be the name of the group that the members share")
    if not isinstance(lag_interval_s, int | float) or isinstance(lag_interval_s, bool):
        raise TypeError(f"lag_interval_s is {lag_interval_s!r}; it must be a number of seconds")
    if not 0 < lag_interval_s < math.inf:
        raise ValueError(f"lag_interval_s is {lag_interval_s}; it must be finite and above 0 seconds")
    check_servers(config.get("bootstrap_servers", ""))
    # The clients would notice only in the middle of a rebalance.
    for name, value in config.items():
        if name.endswith("_ms") and isinstance(value, str | bytes | bool):
            raise TypeError(f"{name} is {value!r}; it must be a number of milliseconds")
        if name in CHOICES:
            check_choice(name, value, CHOICES[name])


def check_servers(servers: object) -> None:
    """Raise `TypeError` or `ValueError` for addresses that are no HOST:PORT."""
    listed = servers.split(",") if isinstance(servers, str) else servers
    if not isinstance(listed, list | tuple | set | frozenset) or not all(isinstance(each, str) for each in listed):
        raise TypeError(f"bootstrap_servers is {servers!r}; it must be HOST:PORT, or a list of these")
    for each in listed:
        host, colon, port = each.rpartition(":")
        if colon and not port.isdecimal() and not host.endswith(":"):
            raise ValueError(f"bootstrap_servers has {each!r}; it must be HOST:PORT, with a number as the port")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise `ValueError` for a text that is none of the choices, in upper or lower case, with the nearest one."""
    if isinstance(value, str) and value.lower() not in {each.lower() for each in choices}:
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(choices)}{did_you_mean(value, choices)}")


def check_names(factory: str, given: Iterable[str], known: Iterable[str], hint: str = "") -> None:
    """Raise `TypeError` for the first argument that is not known, with the nearest that is, or else the hint."""
    names = set(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{factory}() has no argument {name!r}{did_you_mean(name, names) or hint}")


def check_effect(reason: str, **given: object) -> None:
    """Raise `ValueError` for an argument that is given although it has no effect, with the reason."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} has no effect with {reason}")
