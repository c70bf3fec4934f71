"""What a dispatcher may weigh brokers by, besides what the producer sees itself.

A `Metric` is fixed loads of brokers, a `LoadSource` of partitions, or a function. Functions are called in the
background, once a lease, and may take their time: `PromQL` and `LogDirGrowth` are two.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

from loadwise.assignor.clients.arguments import check_names, check_servers
from loadwise.assignor.load.log_dirs import replica_sizes
from loadwise.assignor.load.source import LoadSource
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.installation import pip_install

Loads: TypeAlias = Mapping[int, float]
"""The load of brokers by node id: finite, 0 or more, in any unit; only their ratio matters."""

Metric: TypeAlias = Loads | LoadSource | Callable[[], Loads | None]
"""Loads of brokers; loads of partitions, which count for their leaders; or a function that reads the newest loads."""

LATENCY = "latency"
"""The producer's own metric: mean time from send to acknowledgement."""
IN_FLIGHT = "in_flight"
"""The producer's own metric: bytes that are not acknowledged yet."""

_TIMEOUT_S = 10.0


def loads_of_leaders(source: LoadSource, leaders: Mapping[str, Mapping[int, int]]) -> Loads | None:
    """Return the sum of the loads that each broker leads, by topic and partition; None without fresh loads."""
    snapshot = source.snapshot(leaders.keys())
    if snapshot is None or snapshot.stale:
        return None
    found: dict[int, float] = {}
    for topic, of_topic in leaders.items():
        for partition, load in enumerate(snapshot.load.get(topic, ())):
            if partition in of_topic and load is not None and not math.isnan(load):
                found[of_topic[partition]] = found.get(of_topic[partition], 0.0) + float(load)
    return found or None


class PromQL:
    """A metric of each broker from Prometheus: the latest value of a query.

    ::

        PromQL("http://prometheus:9090", "rate(kafka_server_brokertopicmetrics_bytesin_total[1m])", label="broker_id")

    ``label`` is the label with the broker's node id. If its values are different, such as ``kafka-0:9404``, ``nodes``
    maps them to node ids. Several series of one broker are summed. Raises `BadDispatcherError` for a wrong address.
    """

    def __init__(self, url: str, query: str, *, label: str, nodes: Mapping[str, int] | None = None) -> None:
        address = urlsplit(url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise BadDispatcherError(f"{url!r} is not an address of Prometheus; write http://host:9090")
        self._address = f"{url.rstrip('/')}/api/v1/query?{urlencode({'query': query})}"
        self._label = label
        self._nodes = nodes

    def __call__(self) -> Loads:
        """Query Prometheus. Raises `OSError` without an answer, `ValueError` for one without values of brokers."""
        data = self._data()
        if data["resultType"] != "vector":
            raise ValueError(f"the query returns a {data['resultType']}; it must return an instant vector")
        found: dict[int, float] = {}
        for series in data["result"]:
            node = self._node(series["metric"])
            found[node] = found.get(node, 0.0) + float(series["value"][1])
        return found

    def _data(self) -> Any:
        """Return what Prometheus has for the query. Raises `OSError`, and `ValueError` with Prometheus's reason."""
        try:
            with urlopen(self._address, timeout=_TIMEOUT_S) as found:  # noqa: S310 (the scheme is checked)
                answer = json.load(found)
        except HTTPError as error:
            with error:
                try:
                    answer = json.load(error)
                except ValueError:  # the page of a proxy
                    raise error from None
        if not isinstance(answer, Mapping) or answer.get("status") == "error" or "data" not in answer:
            reason = answer.get("error", answer) if isinstance(answer, Mapping) else answer
            raise ValueError(f"Prometheus refuses the query: {reason}")
        return answer["data"]

    def _node(self, labels: Mapping[str, str]) -> int:
        name = labels.get(self._label)
        if name is None:
            raise ValueError(f"a series has no label {self._label!r}; it has {sorted(labels)}")
        if self._nodes is not None and name in self._nodes:
            return self._nodes[name]
        if not name.isdecimal():
            raise ValueError(
                f"the label {self._label!r} is {name!r}, which is not a node id: give nodes={{{name!r}: ...}}"
            )
        return int(name)


class LogDirGrowth:
    """The growth of each broker's log directories, in bytes per second (DescribeLogDirs).

    ``config`` takes arguments of kafka-python's `KafkaAdminClient`, which needs the right to describe the cluster.
    Raises `TypeError` for other arguments, and `ValueError` for an address that is not HOST:PORT.
    """

    def __init__(self, bootstrap_servers: str, *, clock: Callable[[], float] = time.monotonic, **config: Any) -> None:
        try:
            from kafka import KafkaAdminClient  # noqa: PLC0415 (this metric alone needs it)
        except ImportError as error:
            raise ImportError(f"kafka-python is not installed; get it with: {pip_install('kafka-python')}") from error
        check_servers(bootstrap_servers)
        check_names("LogDirGrowth", config, KafkaAdminClient.DEFAULT_CONFIG)
        self._connect: Callable[[], Any] = partial(KafkaAdminClient, bootstrap_servers=bootstrap_servers, **config)
        self._clock = clock
        self._last: tuple[float, Loads] | None = None

    def __call__(self) -> Loads | None:
        """Read the sizes; None the first time. Raises `LogDirError`, and the client's errors."""
        with contextlib.closing(self._connect()) as admin:
            now_s, answers = self._clock(), admin.describe_log_dirs()
        sizes = {answer["broker"]: 0.0 for answer in answers}
        for (_, node), size in replica_sizes(answers).items():
            sizes[node] += size
        last, self._last = self._last, (now_s, sizes)
        if last is None or now_s <= last[0]:
            return None
        # Retention and deleted topics make a directory smaller; that is no load.
        return {node: max(size - last[1].get(node, size), 0.0) / (now_s - last[0]) for node, size in sizes.items()}
