"""A plan in words and as a table, for the terminal and the page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from loadwise.balance.amounts import amount, duration, relative_amount, unit_of
from loadwise.balance.plan import Plan
from loadwise.balance.remarks import capacities, left_out, racks, rises, stay_above, untouched
from loadwise.counted import counted

BATCH_HEADS = ("batch", "partitions", "leaders", "copied", "busiest broker", "time")
MEANINGS = (
    ("leaders", "Partitions that the broker leads, before and after the plan."),
    (
        "bytes in",
        "What producers send to its leaders and leaders to followers, as a part of capacity or a multiple of the mean.",
    ),
    ("bytes out", "What its leaders send to consumers and followers, as a part of capacity or a multiple of the mean."),
    ("disk", "The sizes of its replicas, as a part of capacity or a multiple of the mean."),
    ("peak in, out", "Bytes in and out in the busiest hour, if the CLUSTER file states them."),
)


def heads(plan: Plan) -> tuple[str, ...]:
    """The heads of the columns of `rows`."""
    return ("broker", "rack", "leaders", *plan.cluster.resources)


def rows(plan: Plan) -> Iterator[list[str]]:
    """A row for each broker, and one for the mean."""
    told = [relative_amount(plan, resource) for resource in range(len(plan.cluster.resources))]
    before, after = plan.limits.relative(plan.before), plan.limits.relative(plan.after)
    led_before = Counter(each.leader for each in plan.cluster.partitions)
    led_after = Counter(each.leader for each in plan.planned.partitions)
    for index, broker in enumerate(plan.cluster.brokers):
        loads = (f"{say(a)} → {say(b)}" for say, a, b in zip(told, before[index], after[index], strict=True))
        leaders = f"{led_before[broker.id]} → {led_after[broker.id]}"
        yield [str(broker.id), broker.rack or "-", leaders, *loads]
    means = zip(plan.limits.mean, plan.cluster.resources, strict=True)
    yield ["mean", "", "", *(amount(mean, unit_of(resource)) for mean, resource in means)]


def batch_rows(plan: Plan, throttle_bytes_per_s: float | None) -> Iterator[list[str]]:
    """A row for each batch: what it changes, what is copied, and how long that takes at the throttle."""
    for number, batch in enumerate(plan.schedule.batches, start=1):
        time = "-" if throttle_bytes_per_s is None else duration(batch.estimated_s(throttle_bytes_per_s))
        changed, led = str(len(batch.reassigned)), str(len(batch.elected))
        yield [str(number), changed, led, amount(batch.moved_bytes), amount(batch.busiest_bytes), time]


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
    """What the plan does not achieve, makes worse, leaves alone and presumes: a sentence each."""
    for remarks in (left_out, stay_above, rises, untouched, racks, capacities):
        yield from remarks(plan)
