"""A plan in words and as a table, for the terminal and the page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loadwise.balance.plan import Plan
from loadwise.balance.rows import RESOURCES

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
    return f"{len(plan.cluster.brokers)} brokers, {len(plan.cluster.partitions):,} partitions, {replicas:,} replicas."


def summary(plan: Plan) -> str:
    """What the plan does, in one sentence."""
    if not plan.reassigned and not plan.elected:
        return "Nothing to change."
    total = sum(each.size_bytes * len(each.replicas) for each in plan.cluster.partitions)
    share = f", {plan.moved_bytes / total:.1%} of all" if total else ""
    return (
        f"The plan changes {_counted(len(plan.elected), 'leader')} and moves {_counted(len(plan.moved), 'replica')}"
        f" ({amount(plan.moved_bytes)}{share})."
    )


def notes(plan: Plan) -> Iterator[str]:
    """A sentence for each resource with brokers that stay above the mean plus a tenth."""
    for resource, name in enumerate(RESOURCES):
        above = plan.above(resource)
        if above:
            mean, heaviest = plan.limits.unit[resource], plan.limits.heaviest[resource]
            most = plan.after[:, resource].max() / mean
            ids = ", ".join(str(broker.id) for broker in above)
            subject = f"Broker {ids} stays" if len(above) == 1 else f"Brokers {ids} stay"
            if heaviest > plan.limits.target[resource]:
                why = f"one replica alone is {heaviest / mean:.2f}; add partitions to its topic, or use more keys"
            elif plan.limits.in_rack[:, resource].max() > plan.limits.target[resource]:
                why = "racks have different numbers of brokers; add brokers to the smaller racks"
            else:
                why = "no better placement was found; add partitions to the large topics"
            yield f"{subject} at up to {most:.2f} times the mean of {name}: {why}."


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
