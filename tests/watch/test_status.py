"""The verdict on a group, from readings that are made up so that the truth is known."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from loadwise.assignor.load.lag import PartitionOffsets
from loadwise.assignor.model import Member
from loadwise.protocol.live_notes import CommitNote, Compared
from loadwise.running_group.members import GroupReading, RunningGroup, RunningMember
from loadwise.watch.as_json import as_json
from loadwise.watch.demand import situation
from loadwise.watch.screen import duration, shown
from loadwise.watch.status import Condition, GroupStatus, status
from loadwise.watch.verdict import Kind, StandingVerdict, verdict

WINDOW_S = 20.0
BEHIND = (Condition.BEHIND, Condition.CATCHES_UP, Condition.DROWNS)


def readings(
    arrivals: Sequence[float], processed: Sequence[float], lag: Sequence[int], *, window_s: float = WINDOW_S
) -> list[GroupReading]:
    """A member for each partition; so many records arrive and are processed there in a second, from a lag on."""
    members = [
        RunningMember(
            member=Member(id=f"m{n}", topics=["t"], owned={"t": [n]}), client_id=f"worker-{n}", client_host="/10.0.0.1"
        )
        for n in range(len(arrivals))
    ]
    group = RunningGroup(group_id="g", protocol="range", is_classic=True, state="Stable", members=members)
    made: list[GroupReading] = []
    for at_s in (0.0, window_s / 2, window_s):
        offsets = {}
        for n, (comes, goes, waits) in enumerate(zip(arrivals, processed, lag, strict=True)):
            end = 10_000 + round(comes * at_s)
            offsets["t", n] = PartitionOffsets(
                beginning=0, end=end, committed=min(10_000 - waits + round(goes * at_s), end)
            )
        made.append(GroupReading(at_s=at_s, group=group, partitions={"t": len(arrivals)}, offsets=offsets, racks={}))
    return made


def judged(given_readings: Sequence[GroupReading], retention_ms: dict[str, int] | None = None) -> GroupStatus:
    return status(given_readings, from_beginning=True, retention_ms=retention_ms or {})


def test_one_member_drowns_while_others_have_time_left() -> None:
    seen = judged(readings([300, 50, 0], [200, 50, 0], [4000, 0, 0]))
    drowning, keeping_up, idle = seen.members
    assert (drowning.label, drowning.condition, drowning.lag) == ("worker-0", Condition.DROWNS, 6000)
    assert (drowning.arrival_per_s, drowning.processed_per_s) == (300, 200)
    backlog = 3200  # beyond 6 seconds of traffic, in both of the newest readings
    assert drowning.utilisation == pytest.approx((300 + backlog / 30) / 200), "its demand, as in the leader's log"
    assert keeping_up.condition is Condition.KEEPS_UP
    assert keeping_up.utilisation is None, "it had no backlog, so nobody knows what it could do"
    assert idle.condition is Condition.IDLE
    assert "1 member falls behind by 100 records/s" in verdict(seen).text
    assert "t-0 alone gets more than its owner processes" in verdict(seen).text


def test_the_group_is_too_small() -> None:
    seen = judged(readings([150, 150, 150, 150], [100, 100, 100, 100], [4000] * 4))
    assert seen.members_wanted == 4, "each partition is too much for one, and can be shared by none"
    seen = judged(readings([300, 300], [200, 200], [4000, 4000]))
    assert seen.members_wanted == 2
    assert all(member.utilisation == 1.5 for member in seen.members)


def test_the_load_is_not_shared_well() -> None:
    made = readings([150, 150, 10], [110, 90, 10], [4000, 4000, 0])
    both = RunningMember(
        member=Member(id="m0", topics=["t"], owned={"t": [0, 1]}), client_id="worker-0", client_host="/10.0.0.1"
    )
    made[0].group.members[0:2] = [both]  # all readings share the group
    seen = judged(made)
    assert verdict(seen).text == (
        "1 member falls behind by 100 records/s while 1 member had time left: the load is not shared well."
    )


def test_a_backlog_that_falls() -> None:
    seen = judged(readings([100, 100], [150, 100], [5000, 0]))
    assert seen.members[0].condition is Condition.CATCHES_UP
    assert verdict(seen).text == "There is a backlog, and no member falls further behind."
    assert verdict(judged(readings([100, 100], [100, 100], [0, 0]))).text == "Every member keeps up."


def test_rates_begin_anew_when_partitions_move() -> None:
    before, _, after = readings([100, 100], [100, 100], [0, 0])
    moved = RunningMember(
        member=Member(id="m0", topics=["t"], owned={"t": [0, 1]}), client_id="worker-0", client_host="/10.0.0.1"
    )
    group = RunningGroup(group_id="g", protocol="range", is_classic=True, state="Stable", members=[moved])
    now = GroupReading(at_s=after.at_s, group=group, partitions=after.partitions, offsets=after.offsets, racks={})
    seen = judged([before, now])
    assert seen.window_s == 0
    assert verdict(seen).text == "Rates are known after the next reading."
    assert as_json(seen, verdict(seen), None)["arrival_per_s"] is None


def test_what_waits_for_the_next_automatic_commit_is_no_backlog() -> None:
    waits = 5 * 20  # clients commit every 5 seconds by default
    [member] = judged(readings([20], [20], [waits])).members
    assert member.condition is Condition.KEEPS_UP
    assert member.utilisation is None


def test_when_retention_takes_what_nobody_read() -> None:
    # 6,000 wait and 300 arrive in a second: the oldest is 20 s old. Its age grows by a third of a second each second.
    seen = judged(readings([300], [200], [4000]), {"t": 60_000})
    assert seen.retention_partition == ("t", 0)
    assert seen.retention_left_s == pytest.approx((60 - 20) * 3)
    assert judged(readings([300], [200], [4000])).retention_left_s is None
    week_ms = 7 * 86_400_000
    assert judged(readings([300], [200], [50]), {"t": week_ms}).retention_left_s is None, "a fresh lag"
    year_ms = 365 * 86_400_000
    assert judged(readings([300], [200], [4000]), {"t": year_ms}).retention_left_s is None, "it may fall until then"


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(0, 9000)), min_size=1, max_size=8),
    st.sampled_from([0.0, 10.0, 30.0]),
)
def test_sums_and_json_hold_for_any_group(partitions: list[tuple[int, int, int]], window_s: float) -> None:
    arrivals, processed, lag = zip(*partitions, strict=True)
    made = readings(arrivals, processed, lag, window_s=window_s)
    seen = judged(made, {"t": 60_000})
    assert seen.lag == sum(at.end - (at.committed or 0) for at in made[-1].offsets.values())
    assert seen.unowned == 0
    assert seen.arrival_per_s == pytest.approx(sum(arrivals) if window_s else 0)
    known = [member for member in seen.members if member.utilisation is not None]
    assert all(member.condition in BEHIND for member in known), "a member without a backlog shows no capacity"
    assert all(member.utilisation > 1 for member in known if member.condition is Condition.DROWNS)
    assert verdict(seen).text
    asked = situation(made, window_s=seen.window_s, from_beginning=True)
    assert (asked is None) == (window_s == 0)


@pytest.mark.parametrize(
    ("client_id", "text"),
    [
        ("orders[prod]", "orders[prod]"),
        ("orders[/]", "orders[/]"),
        ("team:star:1", "team:star:1"),
        ("a\x1b[2Jb\nc", "a\ufffd[2Jb\ufffdc"),
    ],
)
def test_names_that_clients_choose_are_shown_as_they_are_and_command_no_terminal(client_id: str, text: str) -> None:
    made = readings([10], [10], [0])
    group = made[-1].group
    named = replace(group, members=[replace(each, client_id=client_id) for each in group.members])
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    now = judged([replace(made[-1], group=named)])
    console.print(shown(now, verdict(now), None, 120))
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert f"\n{text} " in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 seconds"), (119, "119 seconds"), (120, "2 minutes"), (7_200, "2 hours"), (1e6, "12 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_verdict_stands_until_three_readings_in_a_row_say_otherwise() -> None:
    uneven = readings([150, 150, 10], [110, 90, 10], [4000, 4000, 0])
    both = RunningMember(
        member=Member(id="m0", topics=["t"], owned={"t": [0, 1]}), client_id="worker-0", client_host="/10.0.0.1"
    )
    uneven[0].group.members[0:2] = [both]
    not_shared, too_hot = judged(uneven), judged(readings([300, 50, 0], [200, 50, 0], [4000, 0, 0]))
    standing = StandingVerdict()
    kinds = [standing.after(seen).kind for seen in [not_shared, too_hot, not_shared, too_hot, too_hot, too_hot]]
    assert kinds == [Kind.UNEVEN] * 5 + [Kind.TOO_HOT]
    rebalanced = replace(not_shared, window_s=0.0)
    assert standing.after(rebalanced).kind is Kind.UNKNOWN, "another assignment is another group"
    assert standing.after(not_shared).kind is Kind.UNEVEN


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_fits_the_screen(width: int) -> None:
    made = readings([123_456, 50, 0], [29_999, 50, 0], [4_000, 0, 0])
    long = [
        replace(each, client_id=f"billing-consumer-deployment-7d9f-{number}")
        for number, each in enumerate(made[0].group.members)
    ]
    seen = judged([replace(each, group=replace(each.group, members=long)) for each in made])
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(shown(seen, verdict(seen), None, width))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    [drowning] = [line for line in lines if "drowns" in line]
    assert "123,456" in drowning
    assert "29,999" in drowning
    assert "billing" in drowning


def test_what_the_leader_estimates_is_shown() -> None:
    made = readings([100, 100], [100, 100], [0, 0])
    assert judged(made).compared is None
    note = CommitNote(member="m0", at_ms=1, measured_per_s=9.0, compared=Compared(0.25, 3.5)).encode()
    offsets = made[-1].offsets | {("t", 0): made[-1].offsets["t", 0]._replace(metadata=note)}
    seen = judged([*made[:-1], replace(made[-1], offsets=offsets)])
    printed = Console(file=io.StringIO(), width=100, record=True)
    printed.print(shown(seen, verdict(seen), None, 100))
    assert "0.2 s of arrivals, 3.5 s less than under sticky" in printed.export_text()
    assert as_json(seen, verdict(seen), None)["lag_saved_s"] == 3.5
