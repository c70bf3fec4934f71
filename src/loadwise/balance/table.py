"""A plan in words and as a table, for the terminal and the page. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from loadwise.balance.bounds import LEAST
from loadwise.balance.cluster import Broker
from loadwise.balance.plan import Plan
from loadwise.balance.rows import RESOURCES
from loadwise.counted import counted

HEADS = ("broker", "rack", "leaders", *RESOURCES)
MEANINGS = (
    ("leaders", "Partitions that the broker leads, before and after the plan."),
    ("bytes in", "What producers send to its leaders and leaders send to its followers, as a multiple of the mean."),
    ("bytes out", "What its leaders send to consumers and followers, as a multiple of the mean."),
    ("disk", "The sizes of its replicas, as a multiple of the mean."),
)
_STEP = 1000.0


def amount(number: float, unit: str = "B") -> str:
    """A number of bytes in few characters, in powers of 1000 as disks and networks are sold: ``1.2 GB``."""
    for prefix in ("", "k", "M", "G", "T"):
        if number < _STEP:
            return f"{number:.3g} {prefix}{unit}"
        number /= _STEP
    return f"{number:,.1f} P{unit}"


def rows(plan: Plan) -> Iterator[list[str]]:
    """A row for each broker, and one for the mean."""
    unit = plan.limits.unit
    before, after = plan.before / unit, plan.after / unit
    led_before = Counter(each.leader for each in plan.cluster.partitions)
    led_after = Counter(each.leader for each in plan.planned.partitions)
    for index, broker in enumerate(plan.cluster.brokers):
        loads = (f"{a:.2f} → {b:.2f}" for a, b in zip(before[index], after[index], strict=True))
        leaders = f"{led_before[broker.id]} → {led_after[broker.id]}"
        yield [str(broker.id), broker.rack or "-", leaders, *loads]
    mean_in, mean_out, disk = plan.limits.mean
    yield ["mean", "", "", amount(mean_in, "B/s"), amount(mean_out, "B/s"), amount(disk)]


def about(plan: Plan) -> str:
    """What the cluster has, in one sentence."""
    replicas = sum(len(each.replicas) for each in plan.cluster.partitions)
    brokers, partitions = len(plan.cluster.brokers), len(plan.cluster.partitions)
    return f"{counted(brokers, 'broker')}, {counted(partitions, 'partition')}, {counted(replicas, 'replica')}."


def summary(plan: Plan) -> str:
    """What the plan does, in one sentence."""
    if not plan.reassigned and not plan.elected:
        return "Nothing to change."
    total = sum(each.size_bytes * len(each.replicas) for each in plan.cluster.partitions)
    share = f", {plan.moved_bytes / total:.1%} of all" if total else ""
    done = (
        f"The plan changes {counted(len(plan.elected), 'leader')} and moves {counted(len(plan.moved), 'replica')}"
        f" ({amount(plan.moved_bytes)}{share})."
    )
    if not plan.kept_leaders:
        return done
    of = counted(len(plan.kept_leaders), "partition")
    return f"{done} It makes the leader of {of} the preferred one; Kafka would elect another."


def notes(plan: Plan) -> Iterator[str]:
    """A sentence for each resource and reason for which brokers stay above the mean plus a tenth."""
    for resource, name in enumerate(RESOURCES):
        by_reason: dict[str, list[Broker]] = defaultdict(list)
        for broker in plan.above(resource):
            by_reason[_reason(plan, broker, resource)].append(broker)
        row = {broker.id: index for index, broker in enumerate(plan.cluster.brokers)}
        for reason, above in by_reason.items():
            most = max(plan.after[row[each.id], resource] for each in above) / plan.limits.unit[resource]
            ids = ", ".join(str(broker.id) for broker in above)
            subject = f"Broker {ids} stays" if len(above) == 1 else f"Brokers {ids} stay"
            yield f"{subject} at up to {most:.2f} times the mean of {name}: {reason}."
    yield from _rises(plan)
    without = [str(broker.id) for broker in plan.cluster.brokers if broker.rack is None]
    if 0 < len(without) < len(plan.cluster.brokers):
        subject = f"Broker {without[0]} has" if len(without) == 1 else f"Brokers {', '.join(without)} have"
        yield f"{subject} no rack, and each such broker counts as a rack of its own; set broker.rack."
    totals = plan.before.sum(axis=0)
    levels = [
        name
        for name, mean, all_of in zip(RESOURCES, plan.limits.mean, totals, strict=True)
        if abs(mean * len(plan.before) - all_of) > LEAST * all_of
    ]
    if levels:
        yield f"The mean of {_listed(levels)} leaves out the brokers with a capacity below it."


def _rises(plan: Plan) -> Iterator[str]:
    """A sentence for each resource whose busiest broker gets busier, above the mean plus a tenth."""
    unit = plan.limits.unit
    before, after = plan.before.max(axis=0) / unit, plan.after.max(axis=0) / unit
    better = [name for name, was, is_now in zip(RESOURCES, before, after, strict=True) if is_now < was - LEAST]
    even_out = f"even out {_listed(better) or 'the cluster'}"
    for resource, name in enumerate(RESOURCES):
        if after[resource] > before[resource] + LEAST and plan.above(resource):
            rise = f"from {before[resource]:.2f} to {after[resource]:.2f} times the mean"
            yield f"The busiest broker of {name} goes {rise}, to {_relief(plan) or even_out}."


def _relief(plan: Plan) -> str:
    """What the plan does for brokers above their capacities."""
    above = (plan.before > plan.limits.capacity + LEAST * plan.limits.unit).any(axis=1)
    ids = [str(plan.cluster.brokers[row].id) for row in np.flatnonzero(above)]
    if not ids:
        return ""
    return f"keep broker{'s' * (len(ids) > 1)} {_listed(ids)} within the stated capacity"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def _reason(plan: Plan, broker: Broker, resource: int) -> str:
    row, limits = plan.cluster.brokers.index(broker), plan.limits
    heaviest = plan.heaviest_on[row, resource]
    if heaviest > limits.target[resource]:
        alone = heaviest / limits.unit[resource]
        return f"one replica alone is {alone:.2f}; add partitions to its topic, or use more keys"
    if limits.in_rack[row, resource] > limits.target[resource]:
        return "racks have different numbers of brokers that take replicas; add brokers to the smaller racks"
    if ((limits.capacity > 0.0) & (limits.capacity < limits.mean)).any():
        return "no better placement was found within the stated capacities; state more, or add brokers"
    return "no better placement was found; add partitions to the large topics"
