"""The demo from end to end: a cluster, the stream, every assignor in turn, the table, a slow broker, Spark, a page."""

from __future__ import annotations

import datetime
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import loadwise
from loadwise.demo import spark_step, third_act
from loadwise.demo.arrivals import PARTITIONS as STREAM_PARTITIONS
from loadwise.demo.capacity import explain, verdict
from loadwise.demo.cluster import Cluster, existing_kafka, own_coordinator
from loadwise.demo.errors import CheckFailedError
from loadwise.demo.figures import Figures, figures, in_short, lower_rate, slow_machine
from loadwise.demo.flights import flights
from loadwise.demo.group import TICK_S, Outcome, Plan, Sample, clients_of, run_group
from loadwise.demo.page import Report, render
from loadwise.demo.publish import publish
from loadwise.demo.screen import Screen
from loadwise.demo.second_act import Course, Script, headline, play
from loadwise.demo.second_act import in_short as stream_in_short

STREAM_ASSIGNORS = ("range", "roundrobin", "cooperative-sticky", "weighted")
"""Those that read the stream, at the same time: more groups would compete for the machine."""
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "weighted")
PARTITIONS = 36
MEMBERS = 3
"""The members at the start; one more joins half-way."""
_PACE_TICKS = round(1 / TICK_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line asks for."""

    assignors: Sequence[str]
    bootstrap_servers: str | None
    """A Kafka that is there already; None for our own coordinator."""
    records: int
    rate_per_s: float
    arrival_per_s: float
    stream_s: float
    """How long the second act takes, in seconds; 0 leaves it out, and the third."""
    html: Path
    spark: bool


async def run_demo(settings: Settings, screen: Screen) -> None:
    """Run the demo. Raises `DemoError` when a part of it fails, after all processes have ended."""
    topic = f"loadwise-flights-{uuid.uuid4().hex[:8]}"
    if settings.bootstrap_servers is None:
        place, cluster_of = "loadwise's own coordinator", own_coordinator(topic, PARTITIONS)
    else:
        place = f"the Kafka at {settings.bootstrap_servers}"
        cluster_of = existing_kafka(settings.bootstrap_servers, topic, PARTITIONS)
    began_s = time.monotonic()
    screen.line(announcement(settings), "bold")
    async with cluster_of as cluster:
        screen.line(f"1. {place} serves the topic {topic} at {cluster.bootstrap_servers}")
        ends = await _publish(cluster, settings, screen)
        outcomes = await _drain_with_each(cluster, settings, ends, screen)
        rows = [figures(outcome) for outcome in outcomes]
        rate_per_s = outcomes[0].plan.rate_per_s
        judged = verdict(ends, arrival_per_s=settings.arrival_per_s, rate_per_s=rate_per_s, members=MEMBERS)
        capacity = explain(judged, rows)
        checks = [_at_least_once(rows, sum(ends))]
        screen.line("4. The comparison", "bold")
        screen.table(rows, MEMBERS + 1)
        for line in (*capacity, *checks):
            screen.line(line)
        slow = slow_machine(rows)
        if slow is not None:
            screen.line(slow, "yellow")
        courses = await _stream(cluster, settings, screen, speed=rate_per_s / settings.rate_per_s)
        if settings.stream_s:
            await _slowed_broker(screen)
        lacking = "left out, as asked for" if not settings.spark else spark_step.missing()
        if lacking is None:
            with screen.display():
                checks.append(spark_step.describe(await spark_step.count(cluster, MEMBERS), MEMBERS, sum(ends)))
            screen.line(f"7. {checks[-1]}")
        else:
            screen.line(f"7. Spark: {lacking}", "yellow")
    report = Report(
        setting=_setting(rate_per_s, ends, place),
        outcomes=outcomes,
        rows=rows,
        courses=courses,
        capacity=capacity,
        checks=checks,
        warning=slow,
        footer=f"loadwise {loadwise.__version__}, {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
    )
    settings.html.write_text(render(report), encoding="utf-8")
    screen.line(f"Charts: {settings.html.resolve()}", "bold")
    screen.line(f"Everything checked held; {time.monotonic() - began_s:.0f} s in all.", "green")
    for line in [in_short(rows), *([stream_in_short(courses)] if courses else [])]:
        screen.line(line, "bold")


def announcement(settings: Settings) -> str:
    """What the demo will show, and about how long that takes."""
    seconds = len(settings.assignors) * (5 + 2 * settings.records / (MEMBERS * settings.rate_per_s))
    acts = [f"{settings.records:,} flights are drained by {MEMBERS} consumers under each assignor"]
    if settings.stream_s:
        seconds += settings.stream_s + third_act.LENGTH_S + 15
        acts.append(f"then a stream whose hot keys move runs for {settings.stream_s:.0f} s")
        acts.append("then a broker is slowed under two producers")
    if settings.spark:
        seconds += 15
        acts.append("then Spark reads the topic")
    minutes = max(round(seconds / 60), 1)
    about = f"about {minutes} minute{'s' * (minutes != 1)}"
    return f"In {about} you see which consumers fall behind: {', '.join(acts)}. A table and a page with charts follow."


async def _publish(cluster: Cluster, settings: Settings, screen: Screen) -> tuple[int, ...]:
    began_s = time.monotonic()
    with screen.display():
        published = await publish(
            cluster.bootstrap_servers,
            cluster.topic,
            flights(settings.records),
            lambda done: screen.publishing(done, settings.records),
        )
    ends = await cluster.ends()
    if sum(ends) != published:
        raise CheckFailedError(f"{published:,} records were published, but the topic holds {sum(ends):,}")
    filled = sum(end > 0 for end in ends)
    screen.line(
        f"2. {published:,} flights, keyed by carrier, published in {time.monotonic() - began_s:.1f} s:"
        f" {filled} of {len(ends)} partitions got any, the fullest {max(ends) / published:.0%} of all"
    )
    return ends


async def _drain_with_each(
    cluster: Cluster, settings: Settings, ends: tuple[int, ...], screen: Screen
) -> list[Outcome]:
    """Drain with each assignor, all at one rate: if the machine cannot do it, all begin again at a lower one."""
    rate_per_s: float | None = settings.rate_per_s
    outcomes: list[Outcome] = []
    while rate_per_s is not None:
        screen.line(
            f"3. Each assignor in turn: {MEMBERS} members, each at most {rate_per_s:,.0f} records/s;"
            " a fourth joins when half is done"
        )
        outcomes, lower = [], None
        for name in settings.assignors:
            plan = Plan(assignor=name, clients=clients_of(name, MEMBERS + 1), rate_per_s=rate_per_s)
            outcome = await _drain(cluster, plan, ends, screen)
            outcomes.append(outcome)
            lower = lower_rate(rate_per_s, figures(outcome).pace, outcome.joined_s)
            if lower is not None:
                screen.line(
                    f"This machine is too slow or too busy for {rate_per_s:,.0f} records/s a member: the rates are"
                    f" lowered to {lower:,.0f}, and the drains begin again.",
                    "yellow",
                )
                break
        rate_per_s = lower
    return outcomes


async def _drain(cluster: Cluster, plan: Plan, ends: tuple[int, ...], screen: Screen) -> Outcome:
    recent: deque[Sample] = deque(maxlen=_PACE_TICKS)

    def show(sample: Sample) -> None:
        screen.draining(plan, sum(ends), sample, recent[0] if recent else None)
        recent.append(sample)

    with screen.display():
        outcome = await run_group(cluster, plan, ends, show)
    row = figures(outcome)
    shares = " ".join(f"{share:,}" for share in row.records)
    screen.line(
        f"   {plan.assignor}: drained and committed, {row.drained_s:.1f} s against {row.ideal_s:.1f} s at best;"
        f" records by member: {shares}"
    )
    return outcome


async def _stream(cluster: Cluster, settings: Settings, screen: Screen, *, speed: float) -> list[Course]:
    """The second act, on a topic of its own."""
    if not settings.stream_s:
        screen.line("5. The stream that goes on: left out, as asked for", "yellow")
        return []
    names = [name for name in STREAM_ASSIGNORS if name in settings.assignors] or list(settings.assignors)
    script = Script.of_length(settings.stream_s, names, speed=speed)
    screen.line(
        f"5. A stream of {script.arrival_per_s:,.0f} records/s for {script.end_s:.0f} s, read by a group under each of"
        f" {', '.join(names)} at once: after {script.shift_s:.0f} s the hot keys move, after {script.crash_s:.0f} s one"
        " member of each group is killed"
    )
    async with existing_kafka(cluster.bootstrap_servers, f"{cluster.topic}-stream", STREAM_PARTITIONS) as stream:
        with screen.display():
            courses = await play(stream, script, lambda at_s: screen.streaming(at_s, script.end_s))
    screen.courses(courses)
    screen.line(headline(courses), "bold")
    return courses


async def _slowed_broker(screen: Screen) -> None:
    """The third act, on three brokers of its own."""
    length_s = third_act.LENGTH_S
    screen.line(
        f"6. Two producers send {third_act.RATE_PER_S:,.0f} records/s each for {length_s:.0f} s to three brokers; one"
        f" broker answers {third_act.SLOWED_MS} ms later in the middle third"
    )
    with screen.display():
        courses = await third_act.play(length_s, lambda at_s: screen.streaming(at_s, length_s))
    for line in third_act.picture(courses, length_s):
        screen.line(line)


def _at_least_once(rows: Sequence[Figures], published: int) -> str:
    """The check that the runs end with: a run whose books show a gap has not come to its end."""
    again = ", ".join(f"{row.repeated:,} under {row.assignor}" for row in rows if row.repeated)
    return (
        f"Every one of the {published:,} records was processed at least once and committed under each assignor;"
        f" processed again after a rebalance: {again or 'none'}."
    )


def _setting(rate_per_s: float, ends: Sequence[int], place: str) -> str:
    filled = sum(end > 0 for end in ends)
    return (
        f"{sum(ends):,} flights that left New York in 2013, one record a flight, keyed by carrier: {filled} of"
        f" {len(ends)} partitions get anything. A group of {MEMBERS} members drains the topic under each assignor, each"
        f" member at most {rate_per_s:,.0f} records a second; a fourth joins when half is done. Served by"
        f" {place}."
    )
