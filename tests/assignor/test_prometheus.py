"""The metrics of a group under load, read back by prometheus_client's own parser of its text."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families
from test_leader import Group

from loadwise.assignor.participant import Participant
from loadwise.assignor.prometheus import GroupCollector
from loadwise.assignor.rebalances import Rebalances

ROOT = Path(__file__).resolve().parents[2]


def consumer(participant):
    return SimpleNamespace(rebalances=Rebalances(participant), explain=participant.explain)


def scraped(participant, group_id="g"):
    """Name and labels to value."""
    registry = CollectorRegistry()
    registry.register(GroupCollector(consumer(participant), group_id=group_id))
    openmetrics_text = openmetrics.generate_latest(registry).decode()
    assert list(read_openmetrics(openmetrics_text)), "the stricter format can be read, too"
    return {
        (sample.name, *(value for key, value in sorted(sample.labels.items()) if key != "group")): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if sample.labels["group"] == group_id
    }


@pytest.fixture
def group():
    group = Group("a", "b", "c")
    group.rebalance()
    return group


def test_what_the_leader_decided_is_what_is_scraped(group):
    group.run([112.5] * 12, 60)
    group.run(group.hot("b"), 60)
    group.now_s += 3
    member = group.members["a"]
    seen, decision = scraped(member), member.explain()
    assert seen["loadwise_leads",] == 1
    assert seen["loadwise_reading_age_seconds",] == pytest.approx(3)
    for number, name in enumerate(decision.members):
        assert seen["loadwise_member_demand", name] == decision.judgement.demand[number]
        assert seen["loadwise_member_capacity", name] == decision.capacity_per_s[number]
        assert seen["loadwise_member_utilisation_ratio", name] == decision.judgement.before[number]
        assert seen["loadwise_member_lag", name] == decision.lag[number]
    assert seen["loadwise_member_utilisation_ratio", "b"] > 1.2
    used = decision.judgement.demand.sum() / decision.capacity_per_s.sum()
    assert seen["loadwise_imbalance_ratio",] == pytest.approx(decision.judgement.worst / used)
    assert seen["loadwise_members_missing",] == decision.missing
    assert seen["loadwise_members_too_slow",] == 0


def test_the_members_left_empty_because_of_their_speed_are_counted():
    group = Group("a", "b", "c")
    for name, capacity in (("a", 1.0), ("b", 1.0), ("c", 0.05)):
        group.members[name].capacity = capacity
    group.rebalance()
    assert scraped(group.members["a"])["loadwise_members_too_slow",] == 1


def test_rebalances_are_counted_by_their_cause_with_what_they_moved(group):
    group.run([112.5] * 12, 60)
    group.run(group.hot("b"), 60)
    group.rebalance()
    after_load = scraped(group.members["a"])
    assert (after_load["loadwise_rebalances_total", "load"], after_load["loadwise_rebalances_total", "other"]) == (1, 1)
    assert after_load["loadwise_moved_demand_ratio_total",] == pytest.approx(0.5, abs=0.05), "two of four hot ones"
    group.add("d")
    group.rebalance()
    seen = scraped(group.members["a"])
    assert seen["loadwise_rebalances_total", "members"] == 1
    assert seen["loadwise_assign_seconds_count",] == 3
    assert seen["loadwise_assign_seconds_sum",] > 0


def test_a_member_that_follows_tells_nothing_of_the_others(group):
    seen = scraped(group.members["b"])
    assert seen["loadwise_leads",] == 0
    assert not [name for name, *_ in seen if name.startswith("loadwise_member")]
    assert ("loadwise_reading_age_seconds",) not in seen


def test_utilisation_is_told_only_where_a_capacity_is_known(group):
    seen = scraped(group.members["a"])
    assert ("loadwise_member_demand", "a") in seen
    assert ("loadwise_member_utilisation_ratio", "a") not in seen
    assert seen["loadwise_imbalance_ratio",] == 1


def test_rebalances_without_a_load_and_failures_are_counted():
    class Broken:
        unit = "records"

        def snapshot(self, _):
            raise RuntimeError("no load today")

    group = Group("a")
    member = Participant("weighted", load=Broken())
    group.members["a"] = member
    group.rebalance()
    seen = scraped(member)
    assert (seen["loadwise_fallbacks_total",], seen["loadwise_failures_total",]) == (1, 1)
    assert ("loadwise_leads",) not in seen, "with a load of the user's own nobody watches"


def test_several_groups_of_a_process_share_a_registry(group):
    registry = CollectorRegistry()
    other = Group("x")
    other.rebalance()
    registry.register(GroupCollector(consumer(group.members["a"]), group_id="one"))
    registry.register(GroupCollector(consumer(other.members["x"]), group_id="two"))
    assert registry.get_sample_value("loadwise_leads", {"group": "one"}) == 1
    assert registry.get_sample_value("loadwise_leads", {"group": "two"}) == 1


def test_the_members_that_a_scaler_should_give_are_exported_by_the_leader_once_known(group):
    assert ("loadwise_members_wanted",) not in scraped(group.members["a"]), "no capacity is known"
    group.members["a"].leader.busy = Mock(per_s=900.0, each_s={})
    group.run([112.5] * 12, 60)
    assert scraped(group.members["a"])["loadwise_members_wanted",] == 3
    assert ("loadwise_members_wanted",) not in scraped(group.members["b"])
    group.run([200.0] * 12, 10)
    wanted = scraped(group.members["a"])["loadwise_members_wanted",]
    assert wanted == group.members["a"].explain().wanted > 3
    group.leader = "b"
    group.rebalance()
    assert ("loadwise_members_wanted",) not in scraped(group.members["a"]), "it leads no longer"


@pytest.fixture
def exported(group):
    """The labels of each sample that the leader's collector exports."""
    group.members["a"].leader.busy = Mock(per_s=900.0, each_s={})
    group.run([112.5] * 12, 60)
    registry = CollectorRegistry()
    registry.register(GroupCollector(consumer(group.members["a"]), group_id="g"))
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_each_alert_goes_by_metrics_that_the_collector_exports(exported):
    """And docs/runbook.md says what to do, under the heading to which the alert links."""
    manifest = yaml.safe_load((ROOT / "examples/kubernetes/alerts.yaml").read_text())
    runbook = (ROOT / "docs/runbook.md").read_text()
    alerts = [rule for group in manifest["spec"]["groups"] for rule in group["rules"]]
    for rule in alerts:
        metrics = set(re.findall(r"loadwise_\w+", rule["expr"]))
        labels = {*re.findall(r"(\w+)=\"", rule["expr"]), *re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))}
        assert metrics, rule
        for metric in metrics:
            assert labels <= exported[metric], rule
        assert rule["annotations"]["runbook_url"].endswith(f"/runbook.html#{rule['alert'].lower()}")
        assert f"\n## {rule['alert']}\n" in runbook
    headings = re.findall(r"^## (Loadwise\w+)$", runbook, re.MULTILINE)
    assert headings == [rule["alert"] for rule in alerts]


def test_each_panel_of_the_dashboard_shows_metrics_that_the_collector_exports(exported):
    dashboard = json.loads((ROOT / "examples/grafana/loadwise.json").read_text())
    shown = set()
    for target in (target for panel in dashboard["panels"] for target in panel["targets"]):
        metrics = set(re.findall(r"loadwise_\w+", target["expr"]))
        assert metrics, target
        labels = {*re.findall(r"(\w+)=", target["expr"]), *re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])}
        for metric in metrics:
            assert labels <= exported[metric], target
        shown |= metrics
    assert {name for name in exported if not name.startswith("loadwise_assign_") and "moved" not in name} - shown == {
        "loadwise_members_missing"
    }
