"""The quality benchmark: its rivals decide as they are described, and it ends with tables."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality.play import Summary, play
from benchmarks.quality.rivals import BrooklinLike, Greedy, LagBased
from benchmarks.quality.scenes import Scene, scenes, stream
from loadwise.assignor.algorithms import algorithm
from loadwise.assignor.model import Assignor, GroupSnapshot, Member

ROOT = Path(__file__).resolve().parent.parent.parent


def answer(assignor: Assignor, members: list[Member], load: dict[str, list[float | None]]) -> list[list[int]]:
    """What each member gets, as rows: partitions numbered over all topics."""
    group = GroupSnapshot.of(members, {topic: len(row) for topic, row in load.items()}, load=load)
    owner = assignor.assign(group).owner
    return [np.flatnonzero(owner == number).tolist() for number in range(len(members))]


def two(**owned: list[int]) -> list[Member]:
    return [Member(id=id_, topics=["t", "u"], owned={"t": owned.get(id_, [])}, generation=1) for id_ in "ab"]


def test_lag_based_counts_partitions_of_a_topic_before_it_looks_at_the_lag() -> None:
    # The example in that project's description: 100,000, 50,000 and 60,000; the first member gets the first alone.
    assert answer(LagBased(), two(), {"t": [100_000, 50_000, 60_000]}) == [[0], [1, 2]]
    # Each topic starts anew, so the first member gets the heaviest of both.
    assert answer(LagBased(), two(), {"t": [9, 1], "u": [9, 1]}) == [[0, 2], [1, 3]]


def test_greedy_looks_at_the_load_alone_and_forgets_who_owned_what() -> None:
    assert answer(Greedy(), two(b=[0]), {"t": [9, 1, 2, 3]}) == [[0], [1, 2, 3]]


def test_brooklin_like_moves_nothing_that_is_owned_and_deals_out_what_it_does_not_know() -> None:
    assert answer(BrooklinLike(), two(a=[0, 1, 2]), {"t": [9, 9, 9, 1, None, None]}) == [[0, 1, 2, 4], [3, 5]]


@pytest.mark.parametrize("scene", [scene for scene in scenes(3) if scene.name != "unknown loads"], ids=lambda s: s.name)
def test_weighted_is_the_most_even_of_those_that_move_little(scene: Scene) -> None:
    few = replace(scene, rounds=scene.rounds[:3])
    ours = Summary.of([play(few, algorithm("weighted"))])
    for other in (algorithm("sticky"), BrooklinLike()):
        assert ours.ratio_mean < Summary.of([play(few, other)]).ratio_mean * 1.001
    assert not ours.moved_mean > 0.2 * Summary.of([play(few, Greedy())]).moved_mean


def test_a_stream_is_a_rebalance_a_week_and_a_member_more_from_the_middle_on() -> None:
    scene = stream([(0, 0), (0, 0), (1, 3), (3, 1)], partitions=4)
    assert [round_.load["flights"].tolist() for round_ in scene.rounds] == [
        [2, 0, 0, 0],
        [0, 0, 0, 1],
        [0, 0, 0, 0],
        [0, 1, 0, 0],
    ]
    assert [len(round_.members) for round_ in scene.rounds] == [3, 3, 4, 4]
    assert next(score.moved for score in play(scene, Greedy())) == 0.0


def test_one_command_ends_with_tables() -> None:
    command = [sys.executable, "-m", "benchmarks.quality", "--seeds", "1", "--scene", "zipf", "--scene", "drift"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]
    scenes = [(row[0], "%" in row[1]) for row in rows if len(row) == 8 and row[0] in {"zipf", "drift"}]
    assert scenes == [("zipf", False), ("drift", False), ("drift", True)], "evenness; then what is moved"
