"""Prometheus metrics of a steering process; needs the extra ``prometheus``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from loadwise.assignor.prometheus import decision_metrics

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # isort: skip
from prometheus_client.metrics_core import Metric  # isort: skip
from prometheus_client.registry import Collector  # isort: skip

if TYPE_CHECKING:
    from loadwise.steer.steering import Steering


class SteeringCollector(Collector):
    """The metrics of one steering process, under the names that a group's leader uses. No broker is read."""

    def __init__(self, steering: Steering) -> None:
        self._steering = steering

    def describe(self) -> Iterator[Metric]:
        """Return no metric, as `loadwise.assignor.prometheus.GroupCollector` does."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        steering, labels = self._steering, ["group"]
        group = [steering.group_id]
        leads = GaugeMetricFamily("loadwise_leads", "Whether this process steers the group", labels=labels)
        leads.add_metric(group, steering.leads)
        rebalances = CounterMetricFamily("loadwise_rebalances", "Plans sent, by cause", labels=["group", "cause"])
        rebalances.add_metric([*group, "load"], steering.plans)
        moved = CounterMetricFamily(
            "loadwise_moved_demand_ratio", "Total share of the demand that these have moved", labels=labels
        )
        moved.add_metric(group, steering.moved_share)
        written = CounterMetricFamily(
            "loadwise_steering_written_bytes", "Bytes of notes that this process has written", labels=labels
        )
        written.add_metric(group, steering.budget.total)
        yield from (leads, rebalances, moved, written)
        decision = steering.explain()
        if decision is not None:
            yield from decision_metrics(decision, steering.group_id, steering.reading_age_s)
