"""The simulated days: played for an hour, and that their figures mean what they are called."""

import xml.etree.ElementTree as ET

from benchmarks.live.figures import figures
from benchmarks.live.page import page, svg
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, Live, policies
from benchmarks.live.scenes import SCENES, hot_keys
from benchmarks.live.sweep import VALUES, Tried, pictures, table
from loadwise.assignor.live.settings import LiveSettings


def test_every_scene_lasts_a_day_and_is_drawn_from_its_seed():
    for make in SCENES:
        scene = make(3)
        assert scene.end_s == 86_400
        assert [piece.start_s for piece in scene.pieces] == sorted({piece.start_s for piece in scene.pieces})
        assert str(make(3)) == str(scene)


def test_loadwise_is_near_the_one_that_knows_everything():
    scene = hot_keys(2).shortened(5400)
    best = play(scene, AllKnowing())
    itself = figures(scene, best, best)
    assert (itself.ratio, itself.avoidable, itself.recovered_s) == (1.0, 0.0, 0.0)
    ours = figures(scene, play(scene, Live()), best)
    assert ours.ratio <= 1.10
    assert ours.avoidable <= 0.02
    assert ours.recovered_s <= 60


def test_the_page_shows_every_assignor():
    scene = hot_keys(2).shortened(120)
    best = play(scene, AllKnowing())
    results = {policy.name: figures(scene, play(scene, policy), best) for policy in policies()}
    text = page({scene.name: results}, {scene.name: {"all-knowing": best.worst}})
    assert all(name in text for name in results)
    assert ET.fromstring(svg({"all-knowing": best.worst})).tag.endswith("svg")


def test_the_sweep_has_a_line_and_a_place_in_a_picture_for_each_value(tmp_path):
    tried = [
        Tried(setting, value, scene, 1.0 + value, 0.01, 4.0, 30.0)
        for setting, values in VALUES.items()
        for value in values
        for scene in ("steady", "hot keys")
    ]
    lines = list(table(tried))
    assert len(lines) == 1 + sum(map(len, VALUES.values()))
    assert sum(line.endswith(" *") for line in lines) == len(VALUES), "the default of each setting is among the values"
    assert all(hasattr(LiveSettings(), setting) for setting in VALUES)
    for path, values in zip(pictures(tried, tmp_path), VALUES.values(), strict=True):
        lines = ET.fromstring(path.read_text()).findall("{http://www.w3.org/2000/svg}polyline")
        assert [len(line.get("points").split()) for line in lines] == [len(values)] * 6
