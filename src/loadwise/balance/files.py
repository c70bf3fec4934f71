"""Clusters and capacities as JSON. No I/O.

::

    {"brokers": [{"id": 1, "rack": "a", "capacity": {"disk_bytes": 5e11, "bytes_in_per_s": 1e8}}],
     "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2], "leader": 1,
                     "size_bytes": 5e9, "bytes_in_per_s": 2e6, "bytes_out_per_s": 6e6}]}

A rack, a capacity and each of its fields may be left out. A partition may have ``"in_sync": [1]`` if not all replicas
are, and ``"is_reassigned": true`` while a reassignment is under way. ``"peak_bytes_in_per_s": 9e6`` and
``"peak_bytes_out_per_s": 2e7`` are its rates in the busiest hour of the cluster: the plan then evens out both.
Capacities alone are ``{"1": {"disk_bytes": 5e11}}``.
"""

from __future__ import annotations

import json
import math
from typing import Any

from loadwise.balance.cluster import Broker, Capacity, Cluster, Partition
from loadwise.balance.errors import UnfitClusterError
from loadwise.json_fields import MISSING, JsonFields

_BROKER = ("id", "rack", "capacity")
_CAPACITY = ("bytes_in_per_s", "bytes_out_per_s", "disk_bytes")
_AMOUNTS = ("size_bytes", "bytes_in_per_s", "bytes_out_per_s")
_PARTITION = ("topic", "partition", "replicas", "leader", *_AMOUNTS)
_PEAKS = ("peak_bytes_in_per_s", "peak_bytes_out_per_s")
_STATE = (*_PEAKS, "in_sync", "is_reassigned")
_read = JsonFields(UnfitClusterError, largest=1e18)  # sums of amounts stay exact enough to compare


def read_cluster(text: str, name: str) -> Cluster:
    """Read a cluster; ``name`` is the file's, for the error. Raises `UnfitClusterError`."""
    given = _read.known(_read.an_object(_parsed(text, name), name), ("brokers", "partitions"), f"{name}: ")
    brokers, partitions = (_read.a_list(given.get(of, MISSING), f"{name}: {of}") for of in ("brokers", "partitions"))
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
        _read.refuse(given, name, 'an object such as {"1": {"disk_bytes": 5e11}}')
    for broker in given:
        if not (broker.isascii() and broker.isdecimal() and str(int(broker)) == broker):
            raise UnfitClusterError(f'{name}: {broker!r} is not a broker id; write {{"1": {{"disk_bytes": 5e11}}}}')
    return {int(broker): _capacity(capacity, f"{name}: {broker}") for broker, capacity in given.items()}


def written(cluster: Cluster) -> str:
    """A cluster as JSON, which `read_cluster` reads as the same one."""
    content = {
        "brokers": [_broker_fields(each) for each in cluster.brokers],
        "partitions": [_partition_fields(each) for each in cluster.partitions],
    }
    return json.dumps(content, indent=1) + "\n"


def _broker_fields(broker: Broker) -> dict[str, Any]:
    amounts = {name: getattr(broker.capacity, name) for name in _CAPACITY}
    stated = {name: amount for name, amount in amounts.items() if amount != math.inf}
    fields = {"id": broker.id, "rack": broker.rack, "capacity": stated or None}
    return {name: value for name, value in fields.items() if value is not None}


def _partition_fields(partition: Partition) -> dict[str, Any]:
    fields = {name: getattr(partition, name) for name in _PARTITION}
    fields |= {name: peak for name in _PEAKS if (peak := getattr(partition, name)) is not None}
    if partition.out_of_sync:
        fields["in_sync"] = partition.in_sync
    return fields | ({"is_reassigned": True} if partition.is_reassigned else {})


def _broker(given: object, where: str) -> Broker:
    fields = _read.known(_read.an_object(given, where), _BROKER, f"{where}.")
    rack, capacity = fields.get("rack"), fields.get("capacity")
    return Broker(
        id=_read.whole(fields.get("id", MISSING), f"{where}.id", least=0),
        rack=None if rack is None else _read.text(rack, f"{where}.rack", filled=True),
        capacity=Capacity() if capacity is None else _capacity(capacity, f"{where}.capacity"),
    )


def _capacity(given: object, where: str) -> Capacity:
    stated = _read.known(_read.an_object(given, where), _CAPACITY, f"{where}.")
    return Capacity(**{name: _read.number(value, f"{where}.{name}", least=0) for name, value in stated.items()})


def _partition(given: object, where: str) -> Partition:
    stated = _read.known(_read.an_object(given, where), (*_PARTITION, *_STATE), f"{where}.")
    fields = dict.fromkeys(_PARTITION, MISSING) | stated
    leader, in_sync = fields["leader"], fields.get("in_sync")
    size_bytes, bytes_in_per_s, bytes_out_per_s = (
        _read.number(fields[name], f"{where}.{name}", least=0) for name in _AMOUNTS
    )
    reassigned = fields.get("is_reassigned", False)
    if not isinstance(reassigned, bool):
        _read.refuse(reassigned, f"{where}.is_reassigned", "true or false")
    return Partition(
        topic=_read.text(fields["topic"], f"{where}.topic", filled=True),
        partition=_read.whole(fields["partition"], f"{where}.partition", least=0),
        replicas=_ids(fields["replicas"], f"{where}.replicas"),
        leader=-1 if leader in (None, -1) else _read.whole(leader, f"{where}.leader", least=0),
        size_bytes=size_bytes,
        bytes_in_per_s=bytes_in_per_s,
        bytes_out_per_s=bytes_out_per_s,
        **{name: _read.number(fields[name], f"{where}.{name}", least=0) for name in _PEAKS if name in fields},
        in_sync=None if in_sync is None else _ids(in_sync, f"{where}.in_sync"),
        is_reassigned=bool(reassigned),
    )


def _ids(given: object, where: str) -> tuple[int, ...]:
    return tuple(_read.whole(each, where, least=0) for each in _read.a_list(given, where))


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
