"""The table of what each mechanism is worth."""

import pytest

from benchmarks.live.ablation import MECHANISMS, _of_scene, table
from benchmarks.live.play import play
from benchmarks.live.policies import Live
from benchmarks.live.scenes import SCENES, broker_away, slow_members, stuck_records
from loadwise.assignor.live.tuning import Tuning


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda each: each.name)
def test_each_mechanism_can_be_left_out_and_has_a_scene(mechanism):
    assert mechanism.own in {make.__name__ for make in SCENES} | {"shapes"}
    assert mechanism.tuning() != Tuning() or not mechanism.live().learns


def test_a_row_tells_the_scene_with_and_without_its_mechanism():
    [mechanism] = (each for each in MECHANISMS if each.name == "what members measure of themselves")
    name, figures = _of_scene((slow_members, 1, 0.5, [mechanism]))
    played = {each: {name: [of_scene]} for each, of_scene in figures.items()}
    row = list(table([mechanism], played, {}))[-1]
    assert row.startswith("| what members measure of themselves | slow members | ")
    with_it, without = row.split("|")[3].split("→")
    assert float(with_it) < float(without)


def test_a_record_that_is_stuck_and_a_broker_that_is_away_make_nobody_slow():
    for make in (stuck_records, broker_away):
        live = Live()
        play(make(1).shortened(1800), live, 1)
        per_s = live.watch.knowledge.estimates.of({f"m{number}": 0.0 for number in range(6)}, 1_800_000).per_s
        assert len(set(per_s.tolist())) == 1
