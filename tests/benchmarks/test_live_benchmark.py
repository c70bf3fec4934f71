"""The simulated days: played for an hour, and that their figures mean what they are called."""

import xml.etree.ElementTree as ET

from benchmarks.live.figures import figures
from benchmarks.live.page import page, svg
from benchmarks.live.play import play
from benchmarks.live.policies import AllKnowing, Live, policies
from benchmarks.live.scenes import SCENES, hot_keys


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
