"""Loads that a function reads in the background."""

import math
import threading

import numpy as np
import pytest

from loadwise import PolledLoad
from loadwise.assignor.errors import BadGroupError

WAIT_S = 60.0


class Source:
    """A function whose answers the test gives; it waits for each."""

    def __init__(self, *answers):
        self.answers, self.calls, self.done = iter(answers), 0, threading.Semaphore(0)

    def __call__(self):
        self.calls += 1
        answer = next(self.answers, None)
        if answer is None:
            self.done.release()
            return None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def read(*answers, **settings):
    """What a load has after these answers of its function."""
    source = Source(*answers)
    load = PolledLoad(source, every_s=1e-6, **settings)
    load.snapshot(["t"])
    assert source.done.acquire(timeout=WAIT_S)
    return load


def loads_of(load):
    return {topic: each.tolist() for topic, each in load.snapshot(["t"]).load.items()}


def test_nothing_is_read_before_a_snapshot_is_taken():
    source = Source()
    load = PolledLoad(source)
    assert source.calls == 0
    load.snapshot(["t"])
    assert source.done.acquire(timeout=WAIT_S)


def test_the_newest_loads_count():
    load = read({"t": [1.0, 2.0]}, {"t": [3.0, 4.0]}, unit="bytes")
    assert loads_of(load) == {"t": [3, 4]}
    assert load.snapshot(["t"]).unit == "bytes"


def test_rows_of_a_database_may_be_in_any_order():
    load = read({("t", 2): 5.0, ("t", 0): 1, ("u", 0): 2.0})
    assert loads_of(load)["u"] == [2]
    first, unknown, last = loads_of(load)["t"]
    assert (first, last, math.isnan(unknown)) == (1, 5, True)


def test_numbers_of_numpy_are_numbers():
    first, second = loads_of(read({("t", np.int64(1)): np.float64(5.0), ("t", np.int32(0)): 1}))["t"]
    assert (first, second) == (1, 5)


MIXED = {"t": [1.0], ("t", 1): 2.0}


@pytest.mark.parametrize(
    "wrong",
    [[1.0], MIXED, {("t", 10**7): 1.0}, {3: 1.0}, {("t", -1): 1.0}, {"t": ["x"]}, {"t": [-1.0]}, OSError("away")],
)
def test_a_wrong_answer_keeps_the_last_loads_and_is_logged_once(wrong, caplog):
    load = read({"t": [7.0]}, wrong, wrong)
    assert loads_of(load) == {"t": [7]}
    assert len([record for record in caplog.records if "the last values are used" in record.message]) == 1


def test_loads_become_stale():
    now = [0.0]
    load = read({"t": [7.0]}, clock=lambda: now[0])
    assert not load.snapshot(["t"]).stale
    now[0] = 1.0
    assert load.snapshot(["t"]).stale


@pytest.mark.parametrize("every_s", [0, -1.0, math.nan, math.inf, 1e10, "30", None])
def test_an_interval_that_is_no_time_is_refused(every_s):
    with pytest.raises(BadGroupError, match="every_s"):
        PolledLoad(dict, every_s=every_s)


async def later():
    return {"t": [1.0]}


@pytest.mark.parametrize("read", [{"t": [1.0]}, later])
def test_what_is_no_function_is_refused(read):
    with pytest.raises(BadGroupError, match="give a function"):
        PolledLoad(read)
