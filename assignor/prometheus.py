"""Prometheus metrics of a member and its group's load; needs the extra ``prometheus``.

Register one collector for each consumer. A scrape only reads the member's own counters::

    REGISTRY.register(GroupCollector(consumer, group_id="billing"))

Only the member that leads the group has its load, so only its scrape has metrics of members. docs/live.md lists all
metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from loadwise.assignor.errors import MissingClientError
from loadwise.assignor.live.decision import Decision
from loadwise.assignor.rebalances import Rebalances
from loadwise.installation import pip_install

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise MissingClientError(f"prometheus-client is not installed; get it with: {pip_install('prometheus')}") from error


class Member(Protocol):
    """A consumer of one of the factories, or its ``assignor``."""

    @property
    def rebalances(self) -> Rebalances:
        """The rebalances that it led."""

    def explain(self) -> Decision | None:
        """Return the newest decision about the group's load."""


class GroupCollector(Collector):
    """The metrics of one member of one group. Any thread may collect them; no broker is read."""

    def __init__(self, consumer: Member, *, group_id: str) -> None:
        self._consumer = consumer
        self._group_id = group_id

    def describe(self) -> Iterator[Metric]:
        """Return no metric: registering reads nothing, and several groups of a process share metric names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        member = self._consumer.rebalances
        labels, group = ["group"], [self._group_id]
        assigning = SummaryMetricFamily(
            "loadwise_assign_seconds", "Rebalances that this member led, and the time it took to decide", labels=labels
        )
        assigning.add_metric(group, member.led, member.assigning_s)
        fallbacks = CounterMetricFamily(
            "loadwise_fallbacks", "Rebalances that this member led without a usable load", labels=labels
        )
        fallbacks.add_metric(group, member.fallbacks)
        failures = CounterMetricFamily(
            "loadwise_failures", "Exceptions of the load source and the assignor", labels=labels
        )
        failures.add_metric(group, member.failures)
        yield from (assigning, fallbacks, failures)
        if not member.watches:
            return
        leads = GaugeMetricFamily("loadwise_leads", "Whether this member watches the group", labels=labels)
        leads.add_metric(group, member.leads)
        rebalances = CounterMetricFamily(
            "loadwise_rebalances", "Rebalances that this member led, by cause", labels=["group", "cause"]
        )
        for cause in ("load", "members", "second_round", "other"):
            rebalances.add_metric([self._group_id, cause], member.by_cause[cause])
        moved = CounterMetricFamily(
            "loadwise_moved_demand_ratio", "Total share of the demand that these have moved", labels=labels
        )
        moved.add_metric(group, member.moved_share)
        yield from (leads, rebalances, moved)
        decision = self._consumer.explain()
        if decision is not None:
            yield from decision_metrics(decision, self._group_id, member.reading_age_s)


def decision_metrics(decision: Decision, group_id: str, reading_age_s: float) -> Iterator[Metric]:
    """Yield the metrics of a group's load, and how old the reading is that they come from."""
    age = GaugeMetricFamily(
        "loadwise_reading_age_seconds", "Time since the offsets of the group were read", labels=["group"]
    )
    age.add_metric([group_id], reading_age_s)
    yield age
    judged = decision.judgement
    labels = ["group", "member"]
    columns = [
        ("loadwise_member_demand", "Records that a member has to process in a second", judged.demand),
        ("loadwise_member_lag", "Records that wait for a member", decision.lag),
    ]
    if judged.known:
        columns += [
            ("loadwise_member_capacity", "Records that a member can process in a second", decision.capacity_per_s),
            ("loadwise_member_utilisation_ratio", "Demand over capacity of a member", judged.before),
        ]
    for name, text, values in columns:
        family = GaugeMetricFamily(name, text, labels=labels)
        for member, value in zip(decision.members, values.tolist(), strict=True):
            family.add_metric([group_id, member], value)
        yield family
    mean = float(judged.demand.sum()) / float(decision.capacity_per_s.sum())
    imbalance = GaugeMetricFamily(
        "loadwise_imbalance_ratio", "Utilisation of the busiest member over that of the group", labels=["group"]
    )
    imbalance.add_metric([group_id], judged.worst / mean if mean else 1.0)
    missing = GaugeMetricFamily("loadwise_members_missing", "Members that the group lacks", labels=["group"])
    missing.add_metric([group_id], decision.missing)
    slow = GaugeMetricFamily(
        "loadwise_members_too_slow", "Members without a partition because of their speed", labels=["group"]
    )
    slow.add_metric([group_id], len(decision.too_slow))
    yield from (imbalance, missing, slow)
    if decision.saved_s is not None:
        lag = GaugeMetricFamily(
            "loadwise_lag_seconds", "Lag of the worst member in time of arrivals, estimated", labels=["group"]
        )
        lag.add_metric([group_id], decision.lag_s)
        saved = GaugeMetricFamily(
            "loadwise_lag_saved_seconds", "How much less this is than under sticky", labels=["group"]
        )
        saved.add_metric([group_id], decision.saved_s)
        yield from (lag, saved)
    if decision.wanted is not None:
        wanted = GaugeMetricFamily("loadwise_members_wanted", "Members that the group should have", labels=["group"])
        wanted.add_metric([group_id], decision.wanted)
        yield wanted
