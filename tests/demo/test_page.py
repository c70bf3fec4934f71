"""The numbers, pictures and page of a made-up run."""

import html.parser
import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.assignor.measure import max_over_mean
from loadwise.demo import figures as numbers
from loadwise.demo.chart import HEIGHT, WIDTH, Line, Mark, axes, panel
from loadwise.demo.figures import LEAST_RATE_PER_S, figures, in_short, lower_rate, moved, slow_machine
from loadwise.demo.group import Outcome, Plan, Sample
from loadwise.demo.live_group import Moment
from loadwise.demo.page import Report, render
from loadwise.demo.second_act import Course, Script
from loadwise.report.scale import ticks

ENDS = (600, 300, 0, 100)


def outcome(assignor: str = "range", rate_per_s: float = 100.0) -> Outcome:
    """Member 1 has the two large partitions, and gives the second up to the late member 3."""
    course = [
        Sample(at_s=0.0, backlog=(900, 100, 0), records=(0, 0, 0), partitions=(2, 2, 0), done=0),
        Sample(at_s=4.0, backlog=(500, 0, 0), records=(400, 100, 0), partitions=(2, 2, 0), done=500),
        Sample(at_s=4.5, backlog=(250, 0, 250), records=(400, 100, 0), partitions=(1, 2, 1), done=500),
        Sample(at_s=7.0, backlog=(0, 0, 0), records=(650, 100, 250), partitions=(1, 2, 1), done=1000),
    ]
    return Outcome(
        plan=Plan(assignor=assignor, clients=("kafka-python", "aiokafka", "aiokafka"), rate_per_s=rate_per_s),
        ends=ENDS,
        records=(650, 100, 250),
        repeated=0,
        first_owners=(0, 0, 1, 1),
        last_owners=(0, 2, 1, 1),
        left=(250, 250, 0, 0),
        joined_s=4.0,
        drained_s=7.0,
        rebalances=1,
        samples=tuple(course),
    )


def test_the_numbers_of_a_run() -> None:
    row = figures(outcome())
    assert row.max_mean_first == pytest.approx(900 / 500)
    assert row.max_mean_last == pytest.approx(250 / (500 / 3))
    assert row.greedy_first == pytest.approx(600 / 500)
    assert row.greedy_last == pytest.approx(250 / (500 / 3))
    assert row.ideal_s == pytest.approx(500 / 200 + 500 / 300)
    assert row.keeps_up_per_s == pytest.approx(200 / 1.8)
    assert row.moved == 1
    assert row.pace == pytest.approx(1.0)


def test_a_machine_that_cannot_keep_the_rate_is_told() -> None:
    assert slow_machine([figures(outcome())]) is None
    told = slow_machine([figures(outcome()), figures(outcome("sticky", rate_per_s=200))])
    assert told is not None
    assert "sticky (50%)" in told
    assert "range" not in told


@pytest.mark.parametrize(
    ("rate_per_s", "pace", "measured_s", "lower"),
    [
        (15_000, 1.0, 5.0, None),
        (15_000, 0.9, 5.0, None),
        (15_000, 0.5, 5.0, 5_600),
        (15_000, 0.5, 0.1, None),
        (600, 0.1, 5.0, LEAST_RATE_PER_S),
        (LEAST_RATE_PER_S, 0.1, 5.0, None),
    ],
)
def test_the_rate_is_lowered_on_a_slow_machine(
    rate_per_s: float, pace: float, measured_s: float, lower: float | None
) -> None:
    assert lower_rate(rate_per_s, pace, measured_s) == lower


def test_in_short_the_best_comes_first() -> None:
    slow = replace(figures(outcome()), assignor="slow", drained_s=100.0)
    assert in_short([slow, figures(outcome())]).startswith("Time to drain the topic: range ")


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9))
def test_max_over_mean_lies_between_one_and_the_number_of_members(loads: list[int]) -> None:
    assert 1 - 1e-9 <= max_over_mean(loads) <= len(loads) + 1e-9


def test_what_moved_counts_partitions_with_another_owner() -> None:
    assert moved((0, 1, None, 2), (0, 2, 1, 2)) == 2


@given(st.floats(1e-3, 1e9))
def test_ticks_are_round_few_and_hold_the_largest(largest: float) -> None:
    marks = ticks(largest)
    step = marks[1]
    assert marks[0] == 0
    assert largest <= marks[-1] * (1 + 1e-6)
    assert marks[-2] < largest
    assert 3 <= len(marks) <= 7
    assert step / 10 ** math.floor(math.log10(step) + 1e-9) == pytest.approx(
        min((1, 2, 5), key=lambda round_: abs(step / 10 ** math.floor(math.log10(step) + 1e-9) - round_))
    )


def test_a_panel_is_well_formed_and_stays_within_its_frame() -> None:
    at = axes(7.0, 900)
    text = panel("a <b> & c", "drained", at, [Line("x", "m1", [(0, 900), (7, 0)])], [Mark(4, "joins", "join")])
    root = ET.fromstring(text)
    line = root.find("polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.attrib["points"].split()]
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
    assert points[0][1] < points[1][1], "records grow upwards"
    assert root.attrib["aria-label"] == "a <b> & c: drained"


class Tags(html.parser.HTMLParser):
    """Collects open tags, and fails where one is closed that is not the innermost."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [name for name, _ in attrs if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br", "line"):
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    outcomes = [outcome("range"), outcome("weighted")]
    page = render(
        Report(
            setting="So & so",
            outcomes=outcomes,
            rows=[figures(each) for each in outcomes],
            courses=[
                Course(
                    assignor=name,
                    moments=[Moment(float(at), at * 10) for at in range(100)],
                    rebalances=1,
                    script=Script(assignors=("range", "weighted")),
                )
                for name in ("range", "weighted")
            ],
            capacity=["enough"],
            checks=["all there"],
            warning="too busy",
            footer="now",
        )
    )
    tags = Tags()
    tags.feed(page)
    assert tags.stack == []
    assert tags.seen.count("svg") == 3
    assert tags.seen.count("polyline") == 8
    assert tags.links == []
    assert "://" not in page
    assert "url(" not in page
    assert "script" not in tags.seen
    for text in ("So &amp; so", "enough", "all there", "too busy", *(name for name, _ in numbers.DEFINITIONS)):
        assert text in page
