"""Clusters and capacities as JSON. No I/O.

::

    {"brokers": [{"id": 1, "rack": "a", "capacity": {"disk_bytes": 5e11, "bytes_in_per_s": 1e8}}],
     "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "leader": 1,
                     "size_bytes": 5e9, "bytes_in_per_s": 2e6, "bytes_out_per_s": 6e6}]}

A rack, a capacity and each of its fields may be left out. Capacities alone are ``{"1": {"disk_bytes": 5e11}}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from loadwise.balance.cluster import Broker, Capacity, Cluster, Partition
from loadwise.balance.errors import UnfitClusterError
from loadwise.nearest import near_or_all

_BROKER = ("id", "rack", "capacity")
_CAPACITY = ("bytes_in_per_s", "bytes_out_per_s", "disk_bytes")
_PARTITION = ("topic", "partition", "replicas", "leader", "size_bytes", "bytes_in_per_s", "bytes_out_per_s")
_MOST = 2**31 - 1
_MOST_AMOUNT = 1e18
"""Sums of amounts stay exact enough to compare."""


def read_cluster(text: str, name: str) -> Cluster:
    """Read a cluster; ``name`` is the file's, for the error. Raises `UnfitClusterError`."""
    given = _object(_parsed(text, name), name, ("brokers", "partitions"))
    brokers = _list(_field(given, "brokers", name), f"{name}: brokers")
    partitions = _list(_field(given, "partitions", name), f"{name}: partitions")
    read = [_broker(broker, f"{name}: brokers[{index}]") for index, broker in enumerate(brokers)]
    try:
        return Cluster(
            brokers=tuple(read),
            partitions=tuple(
                _partition(partition, f"{name}: partitions[{index}]") for index, partition in enumerate(partitions)
            ),
        )
    except UnfitClusterError as error:
        raise error if str(error).startswith(name) else UnfitClusterError(f"{name}: {error}") from error


def read_capacities(text: str, name: str) -> dict[int, Capacity]:
    """Read capacities by broker id; ``name`` is the file's, for the error. Raises `UnfitClusterError`."""
    given = _parsed(text, name)
    if not isinstance(given, dict):
        _refuse(given, name, 'an object such as {"1": {"disk_bytes": 5e11}}')
    for broker in given:
        if not (broker.isascii() and broker.isdecimal() and str(int(broker)) == broker):
            raise UnfitClusterError(f'{name}: {broker!r} is not a broker id; write {{"1": {{"disk_bytes": 5e11}}}}')
    return {int(broker): _capacity(capacity, f"{name}: {broker}") for broker, capacity in given.items()}


def written(cluster: Cluster) -> str:
    """A cluster as JSON, which `read_cluster` reads as the same one."""
    content = {
        "brokers": [_broker_fields(each) for each in cluster.brokers],
        "partitions": [{name: getattr(each, name) for name in _PARTITION} for each in cluster.partitions],
    }
    return json.dumps(content, indent=1) + "\n"


def _broker_fields(broker: Broker) -> dict[str, Any]:
    amounts = {name: getattr(broker.capacity, name) for name in _CAPACITY}
    stated = {name: amount for name, amount in amounts.items() if amount != math.inf}
    fields = {"id": broker.id, "rack": broker.rack, "capacity": stated or None}
    return {name: value for name, value in fields.items() if value is not None}


def _broker(given: object, where: str) -> Broker:
    fields = _object(given, where, _BROKER)
    rack, capacity = fields.get("rack"), fields.get("capacity")
    return Broker(
        id=_whole(_field(fields, "id", where), f"{where}.id"),
        rack=None if rack is None else _text(rack, f"{where}.rack"),
        capacity=Capacity() if capacity is None else _capacity(capacity, f"{where}.capacity"),
    )


def _capacity(given: object, where: str) -> Capacity:
    return Capacity(
        **{name: _amount(value, f"{where}.{name}") for name, value in _object(given, where, _CAPACITY).items()}
    )


def _partition(given: object, where: str) -> Partition:
    fields = _object(given, where, _PARTITION)
    topic, number, replicas, leader, *amounts = (_field(fields, name, where) for name in _PARTITION)
    size_bytes, bytes_in_per_s, bytes_out_per_s = (
        _amount(amount, f"{where}.{name}") for amount, name in zip(amounts, _PARTITION[4:], strict=True)
    )
    return Partition(
        topic=_text(topic, f"{where}.topic"),
        partition=_whole(number, f"{where}.partition"),
        replicas=tuple(_whole(each, f"{where}.replicas") for each in _list(replicas, f"{where}.replicas")),
        leader=-1 if leader in (None, -1) else _whole(leader, f"{where}.leader"),
        size_bytes=size_bytes,
        bytes_in_per_s=bytes_in_per_s,
        bytes_out_per_s=bytes_out_per_s,
    )


def _parsed(text: str, name: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        raise UnfitClusterError(f"{name}, line {error.lineno}, column {error.colno}: not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise UnfitClusterError(f"{name}: not JSON that can be read ({error})") from error


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is given twice; keep one of them")
    return fields


def _object(given: object, where: str, names: Collection[str]) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        _refuse(given, where, f"an object with {', '.join(names)}")
    for name in given:
        if name not in names:
            raise UnfitClusterError(f"{where}: {name!r} is not a field{near_or_all(name, names)}")
    return given


def _field(given: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in given:
        raise UnfitClusterError(f"{where}: the field {name} is missing; add it")
    return given[name]


def _list(given: object, where: str) -> list[Any]:
    return given if isinstance(given, list) else _refuse(given, where, "a list")


def _text(given: object, where: str) -> str:
    return given if isinstance(given, str) and given else _refuse(given, where, "a text")


def _whole(given: object, where: str) -> int:
    if type(given) is not int or not 0 <= given <= _MOST:
        _refuse(given, where, "a whole number of 0 or more")
    return given


def _amount(given: object, where: str) -> float:
    # Python reads NaN and Infinity, which JSON has not.
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= _MOST_AMOUNT:
        _refuse(given, where, "a number of 0 or more")
    return float(given)


def _refuse(given: object, where: str, expected: str) -> NoReturn:
    shown = json.dumps(given)
    raise UnfitClusterError(f"{where} is {shown if len(shown) <= 40 else f'{shown[:39]}…'}; expected {expected}")
