"""The pictures and the page of a comparison."""

from __future__ import annotations

import html.parser
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.compare.bars import bars
from loadwise.compare.columns import COLUMNS
from loadwise.compare.comparison import compare
from loadwise.compare.page import render
from loadwise.compare.scenarios import scenario
from loadwise.report.bar_chart import HEIGHT, WIDTH

LOADS = st.one_of(st.just(0.0), st.floats(1e-3, 1e12))


@given(st.lists(LOADS, min_size=1, max_size=200), st.floats(1, 3))
def test_bars_stay_in_the_picture_and_are_as_high_as_their_loads(loads: list[float], room: float) -> None:
    mean = sum(loads) / len(loads)
    names = [f"<{index}>&\u2026" for index in range(len(loads))]
    root = ET.fromstring(bars("range", "a & b", names, loads, mean=mean, top=max(loads) * room, bound=mean))
    drawn = [(float(bar.attrib["height"]), float(bar.attrib["y"])) for bar in root.findall("rect")]
    assert len(drawn) == len(loads)
    assert all(height >= 0 and 0 <= y <= HEIGHT for height, y in drawn)
    assert all(0 <= float(text.attrib["x"]) <= WIDTH for text in root.findall("text"))
    for (height, _), load in zip(drawn, loads, strict=True):
        assert abs(height - drawn[loads.index(max(loads))][0] * (load / max(loads) if load else 0)) < 0.2
    titles = [bar.findtext("title") or "" for bar in root.findall("rect")]
    assert all(title.startswith(name) for title, name in zip(titles, names, strict=True))
    marked = [index for index, bar in enumerate(root.findall("rect")) if "high" in bar.attrib["class"]]
    assert marked == [index for index, load in enumerate(loads) if load > 1.1 * mean]


def test_the_ideal_is_drawn_where_a_bar_of_its_height_would_end() -> None:
    root = ET.fromstring(bars("range", "", ["a", "b"], [40.0, 80.0], mean=30, top=80, bound=40))
    as_high = next(iter(root.findall("rect")))
    line = next(each for each in root.findall("line") if each.attrib["class"] == "ideal")
    assert float(line.attrib["y1"]) == float(line.attrib["y2"]) == float(as_high.attrib["y"])
    assert "ideal 40" in [text.text for text in root.findall("text")]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        ([f"orders-{n}" for n in range(12)], [f"\u2026{n}" for n in range(12)]),
        ([f"billing-{n}-of-a-long-name" for n in range(12)], ["\u20260-o\u2026"]),
        ([f"c{n}" for n in range(12)], ["c0", "c11"]),
    ],
)
def test_labels_keep_what_tells_members_apart(names: list[str], labels: list[str]) -> None:
    picture = bars("range", "", names, [1.0] * 12, mean=1, top=1, bound=1)
    drawn = [text.text for text in ET.fromstring(picture).findall("text")]
    assert set(labels) <= set(drawn)


class Tags(html.parser.HTMLParser):
    """Collects tags and links."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.links += [name for name, _ in attrs if name in ("src", "href", "xlink:href")]


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    situation = replace(scenario("one-joins"), about="<script>So & so")
    names = ["range", "roundrobin", "sticky", "weighted"]
    compared = compare(situation, names, lambda: 0.0)
    page = render(compared, "by <me>")
    tags = Tags()
    tags.feed(page)
    assert tags.seen.count("svg") == len(names)
    assert tags.seen.count("rect") == len(names) * 7
    assert tags.seen.count("tr") == len(names) + 1
    assert tags.links == []
    assert not {"://", "url(", "<script"} & {word for word in ("://", "url(", "<script") if word in page}
    for text in ("&lt;script&gt;So &amp; so", "by &lt;me&gt;", *(column.name for column in COLUMNS)):
        assert text in page
    for winner in (' class="best">1.05</td>', ' class="best">9</td>', '"max/mean">1.91</td>', '"moved">14</td>'):
        assert winner in page
    for row in compared.rows:
        assert f"max/mean {row.measured.max_over_mean:.2f}" in page
