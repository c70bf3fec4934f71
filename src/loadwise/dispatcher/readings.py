"""The metrics of one dispatcher: the newest loads of each, and the scores of brokers by all of them."""

from __future__ import annotations

import logging
import math
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from functools import partial

from loadwise.assignor.load.background import Background
from loadwise.assignor.load.drain import DrainLoad
from loadwise.assignor.load.lag import LagLoad
from loadwise.assignor.load.mix import MixedLoad
from loadwise.assignor.load.rate import RateLoad
from loadwise.assignor.load.source import LoadSource
from loadwise.assignor.troubles import Troubles
from loadwise.dispatcher.acknowledgements import Measured
from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.metrics import IN_FLIGHT, LATENCY, Loads, Metric, loads_of_leaders
from loadwise.dispatcher.scores import check_weights, weighted_scores
from loadwise.dispatcher.table import NO_LEADER

_log = logging.getLogger(__name__)


class Readings:
    """Reads the metrics of a dispatcher and weighs them. Raises `BadDispatcherError`."""

    def __init__(self, metrics: Mapping[str, Metric], weights: Mapping[str, float]) -> None:
        self._metrics = {name: _read_by(name, metric) for name, metric in metrics.items()}
        if own := {LATENCY, IN_FLIGHT} & self._metrics.keys():
            raise BadDispatcherError(
                f"{sorted(own)} are measured by the dispatcher itself; give your metric another name"
            )
        check_weights(weights, [LATENCY, IN_FLIGHT, *self._metrics])
        self._weights = dict(weights)
        self.by_latency = self._weights.get(LATENCY, 1.0) > 0
        """Whether latency counts."""
        self._leaders: dict[str, Mapping[int, int]] = {}
        self._last: dict[str, Loads] = {}
        self._requested_at_s = -math.inf
        self._troubles = Troubles()

    def request(self, now_s: float, interval_s: float) -> None:
        """Read the functions in the background, for a later lease, at most once in an interval."""
        if now_s - self._requested_at_s < interval_s:
            return
        self._requested_at_s = now_s
        for metric in self._metrics.values():
            if isinstance(metric, Background):
                metric.request()

    def scores(self, topic: str, leaders: Mapping[int, int], measured: Measured) -> Mapping[int, float] | None:
        """Return the score of each leader of a topic by the newest loads; None without any."""
        self._leaders[topic] = leaders
        nodes = set(leaders.values()) - {NO_LEADER}
        if not nodes:
            return None
        for name, metric in self._metrics.items():
            loads = self._read(name, metric)
            if loads is not None:
                self._last[name] = loads
                if loads and nodes.isdisjoint(loads):
                    self._warn_of_unknown(name, loads)
        own: dict[str, Loads] = {LATENCY: measured.latency_s, IN_FLIGHT: measured.in_flight_bytes}
        return weighted_scores(own | self._last, self._weights, nodes)

    def _warn_of_unknown(self, name: str, loads: Loads) -> None:
        known = {leader for leaders in self._leaders.values() for leader in leaders.values()} - {NO_LEADER}
        if known.isdisjoint(loads) and self._troubles.begins(f"{name} of unknown brokers"):
            _log.warning(
                "metric %r has loads for brokers %s, but the leaders are %s: give loads by node id",
                name,
                sorted(loads),
                sorted(known),
            )

    def _read(self, name: str, metric: Loads | LoadSource | Background[Loads]) -> Loads | None:
        """Return the newest loads of a metric; None if there are none."""
        if isinstance(metric, Background):
            return metric.newest
        try:
            loads = loads_of_leaders(metric, self._leaders) if isinstance(metric, LoadSource) else _numbers(metric)
        except (Exception, CancelledError) as error:  # noqa: BLE001 - the user's code; it must not fail a record
            if self._troubles.begins(f"{name} failed"):
                _log.warning("metric %r failed; its last loads are used until it works: %r", name, error)
            return None
        self._troubles.over(f"{name} failed")
        return loads


def _read_by(name: str, metric: Metric) -> Loads | LoadSource | Background[Loads]:
    """Return the metric, with functions put into the background. Raises `BadDispatcherError` if it is none."""
    if unfilled := _unfilled(metric):
        raise BadDispatcherError(f"metric {name!r} has a {unfilled}, which only consumers fill; give a function")
    if isinstance(metric, LoadSource):
        return metric
    if callable(metric):
        return Background(partial(_checked, metric), name=f"metric {name!r}")
    if not isinstance(metric, Mapping):
        raise BadDispatcherError(f"metric {name!r} is {metric!r}; give loads by node id, a LoadSource or a function")
    try:
        _numbers(metric)
    except ValueError as error:
        raise BadDispatcherError(f"metric {name!r}: {error}") from error
    return metric


def _unfilled(source: object) -> str | None:
    """Return the class of a load that nothing fills in a producer, alone or as a part; None without one."""
    if type(source) in {LagLoad, RateLoad}:  # clients read by subclasses
        return type(source).__name__
    if isinstance(source, DrainLoad):
        return _unfilled(source.lag)
    parts = source.sources.values() if isinstance(source, MixedLoad) else ()
    return next(filter(None, map(_unfilled, parts)), None)


def _checked(metric: Callable[[], Loads | None]) -> Loads | None:
    loads = metric()
    return None if loads is None else _numbers(loads)


def _numbers(loads: Loads) -> Loads:
    """Return the loads as numbers. Raises `ValueError`."""
    try:
        return {int(node): float(load) for node, load in loads.items()}
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"loads are {loads!r}; they must map node ids to numbers") from error
