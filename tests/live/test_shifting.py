"""Real groups whose load keeps shifting, beside one of Kafka's assignors on the same traffic at the same time."""

import time
import uuid
from contextlib import ExitStack

import numpy as np
import pytest
from figures import Figure
from live_group import LiveGroup
from seeds import SEED

from benchmarks.live.shifting import scene

pytestmark = [pytest.mark.kafka, pytest.mark.live]

PLAYED_S = 240
SPEED, MEMBERS = 600.0, 5
CASES = {
    "bursts": ("bursts of 8 s in 60", "cooperative-weighted", "cooperative-sticky"),
    "rotation": ("hot set every 30 s", "weighted", "roundrobin"),
}


class Books:
    """How many records of each partition had arrived, and how many were processed, at one moment after another."""

    def __init__(self, group):
        self._group, self._at, self._sent, self._done = group, [], [], []

    def look(self):
        done = self._group.done
        self._at.append(time.monotonic())
        self._done.append([len(done[partition]) for partition in sorted(done)])
        self._sent.append(list(self._group.arrivals.sent))

    def latencies(self):
        """The seconds between arrival and processing of each record after the first look, as float64[records]."""
        at, sent, done = np.array(self._at), np.array(self._sent).T, np.array(self._done).T
        each = []
        for arrived, processed in zip(sent, done, strict=True):
            records = np.arange(arrived[0] + 1, min(arrived[-1], processed[-1]) + 1)
            each.append(at[processed.searchsorted(records)] - at[arrived.searchsorted(records)])
        return np.concatenate(each)


def play(broker, traffic, *assignors):
    """The latencies under each assignor."""
    pieces = [piece for piece in scene(traffic, SEED).pieces if piece.start_s < PLAYED_S]
    rates = [piece.rates["t"].tolist() for piece in pieces]
    ends_s = [*(piece.start_s for piece in pieces[1:]), PLAYED_S]
    with ExitStack() as stack:
        groups = []
        for assignor in assignors:
            name = f"shifting-{uuid.uuid4().hex}"
            made = LiveGroup(broker, name, name, assignor=assignor, rates=[0.0] * len(rates[0]), tick_s=0.1)
            groups.append(stack.enter_context(made))
        for group in groups:
            for _ in range(MEMBERS):
                group.join(speed=SPEED)
            group.wait_until_at_rest(MEMBERS, why="joining")
        books, began = [Books(group) for group in groups], time.monotonic()

        def over(end_s):
            for each in books:
                each.look()
            return time.monotonic() >= began + end_s

        for now, end_s in zip(rates, ends_s, strict=True):
            for group in groups:
                group.arrivals.rates = now
            groups[0].wait_until(lambda end_s=end_s: over(end_s))
        for group in groups:
            group.arrivals.rates = [0.0] * len(rates[0])
        groups[0].wait_until(lambda: over(0) and not any(group.lag for group in groups), why="processing of the rest")
        over(0)
        return [each.latencies() for each in books], groups[0].load_rebalances()


MEASURES = {
    "mean": (np.mean, 1.1, 0.1),
    "p99": (lambda seconds: np.percentile(seconds, 99), 1.15, 0.5),
    "highest": (np.max, 1.15, 0.5),
}
"""What is measured, and the limit: this many times Kafka's assignor's figure, and this many seconds more.

An assignor cannot foresee which partitions the next burst is in, so a run in which it is lucky proves nothing.
"""


@pytest.mark.parametrize("broker", ["apache"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_shifting(broker, record, name):
    (ours, stock), requests = play(broker, *CASES[name])
    _, assignor, beside = CASES[name]
    figures = [Figure("rebalances requested", requests)]
    for measure, (of, times, more_s) in MEASURES.items():
        figures.append(Figure(f"{measure} latency, {beside}, s", its := float(of(stock))))
        figures.append(Figure(f"{measure} latency, {assignor}, s", float(of(ours)), times * its + more_s))
    record(figures)
