"""What a plan does not achieve or leaves alone, and why, in sentences. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from loadwise.balance.amounts import amount, relative_amount
from loadwise.balance.bounds import LEAST
from loadwise.balance.cluster import Broker
from loadwise.balance.plan import Plan
from loadwise.balance.rows import NONE, ClusterRows
from loadwise.counted import counted

_LISTED = 5
"""Partitions are named up to this many."""


def left_out(plan: Plan) -> Iterator[str]:
    """The partition that blocks others, or is blocked, for the least space, and how many are."""
    blocked = plan.schedule.blocked
    if blocked:
        least = min(blocked, key=lambda each: each.missing_bytes)
        others = f", and {counted(len(blocked) - 1, 'partition')} more cannot move either" if len(blocked) > 1 else ""
        yield (
            f"Partition {least.partition.name} ({amount(least.partition.size_bytes)}) cannot move to broker"
            f" {least.broker}: its disk holds {amount(least.held_bytes)}, and its headroom is"
            f" {amount(least.headroom_bytes)}{others}. Another {amount(least.missing_bytes)} would be enough: delete"
            " data there, state more capacity, or raise --headroom."
        )


def stay_above(plan: Plan) -> Iterator[str]:
    """A sentence for each resource and reason for which brokers stay above their share plus a tenth."""
    after = plan.limits.relative(plan.after)
    row = {broker.id: index for index, broker in enumerate(plan.cluster.brokers)}
    for resource in range(len(plan.cluster.resources)):
        by_reason: dict[str, list[Broker]] = defaultdict(list)
        for broker in plan.above(resource):
            by_reason[_reason(plan, broker, resource)].append(broker)
        for reason, above in by_reason.items():
            most = max(after[row[each.id], resource] for each in above)
            ids = ", ".join(str(broker.id) for broker in above)
            subject = f"Broker {ids} stays" if len(above) == 1 else f"Brokers {ids} stay"
            yield f"{subject} at up to {relative_amount(plan, resource)(most)} {_of(plan, resource)}: {reason}."


def _of(plan: Plan, resource: int) -> str:
    whole = "of the capacity" if plan.limits.by_capacity[resource] else "times the mean"
    return f"{whole} of {plan.cluster.resources[resource]}"


def rises(plan: Plan) -> Iterator[str]:
    """A sentence for each resource whose busiest broker gets busier, above its share plus a tenth."""
    before, after = (plan.limits.relative(load).max(axis=0) for load in (plan.before, plan.after))
    better = [
        name for name, was, is_now in zip(plan.cluster.resources, before, after, strict=True) if is_now < was - LEAST
    ]
    even_out = f"even out {_listed(better) or 'the cluster'}"
    for resource, name in enumerate(plan.cluster.resources):
        if after[resource] > before[resource] + LEAST and plan.above(resource):
            say = relative_amount(plan, resource)
            unit = _of(plan, resource).removesuffix(f" of {name}")
            rise = f"from {say(before[resource])} to {say(after[resource])} {unit}"
            yield f"The busiest broker of {name} goes {rise}, to {_relief(plan) or even_out}."


def untouched(plan: Plan) -> Iterator[str]:
    """Partitions that no plan changes."""
    reassigned = [each.name for each in plan.cluster.partitions if each.is_reassigned]
    if reassigned:
        yield f"{_stay(reassigned)}: a reassignment is under way."
    lagging = [each for each in plan.cluster.partitions if each.out_of_sync and not each.is_reassigned]
    if lagging:
        brokers = sorted({broker for each in lagging for broker in each.out_of_sync})
        yield (
            f"{_stay([each.name for each in lagging])}: replicas on broker{'s' * (len(brokers) > 1)}"
            f" {_listed(list(map(str, brokers)))} are not in sync. Plan again when they are."
        )


def _stay(names: list[str]) -> str:
    listed = ", ".join(names) if len(names) <= _LISTED else f"{', '.join(names[:_LISTED])}, …"
    return f"{counted(len(names), 'partition')} {'stays' if len(names) == 1 else 'stay'} as now ({listed})"


def racks(plan: Plan) -> Iterator[str]:
    """Brokers without a rack, and partitions that stay in fewer racks than they could be in."""
    without = [str(broker.id) for broker in plan.cluster.brokers if broker.rack is None]
    if 0 < len(without) < len(plan.cluster.brokers):
        subject = f"Broker {without[0]} has" if len(without) == 1 else f"Brokers {', '.join(without)} have"
        yield f"{subject} no rack, and each such broker counts as a rack of its own; set broker.rack."
    rows = ClusterRows.of(plan.planned, plan.scope)
    most = np.minimum((rows.replicas != NONE).sum(axis=1), len(set(rows.rack[~rows.emptied].tolist())))
    fewer = [plan.planned.partitions[row].name for row in np.flatnonzero(rows.rack_counts(rows.replicas) < most)]
    if fewer:
        yield f"{_stay(fewer)}, in fewer racks than they could be: no permitted broker of another rack takes a replica."


def capacities(plan: Plan) -> Iterator[str]:
    """What is presumed of capacities that are not stated."""
    rows = ClusterRows.of(plan.cluster, plan.scope)
    stated = np.isfinite(rows.capacity[~rows.emptied & ~rows.excluded])
    by_name = list(zip(plan.cluster.resources, stated.T, strict=True))
    none = [name for name, those in by_name if not those.any()]
    some = [name for name, those in by_name if those.any() and not those.all()]
    if none and len(stated):
        yield f"No broker states a capacity of {_listed(none)}: all brokers count as equal; see --capacities."
    if some:
        yield f"Not all brokers state a capacity of {_listed(some)}: shares are equal up to the stated ones."
    totals = plan.before[~rows.excluded].sum(axis=0)
    usable = int((~rows.excluded).sum())
    levels = [
        name
        for resource, name in enumerate(plan.cluster.resources)
        if not plan.limits.by_capacity[resource]
        and abs(plan.limits.mean[resource] * usable - totals[resource]) > LEAST * totals[resource]
    ]
    if levels:
        yield f"The mean of {_listed(levels)} leaves out the brokers with a capacity below it."


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
    if heaviest > limits.target[row, resource]:
        alone = relative_amount(plan, resource)(heaviest / limits.whole[row, resource])
        return f"one replica alone is {alone}; add partitions to its topic, or use more keys"
    if limits.in_rack[row, resource] > limits.target[row, resource]:
        return "racks have different numbers of brokers that take replicas; add brokers to the smaller racks"
    if ((limits.capacity > 0.0) & (limits.capacity < limits.mean)).any():
        return "no better placement was found within the stated capacities; state more capacity, or add brokers"
    return "no better placement was found; add partitions to the large topics"
