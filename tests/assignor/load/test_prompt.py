"""A load source that blocks does not keep the group waiting."""

import threading

import pytest

from loadwise.assignor.errors import BadGroupError
from loadwise.assignor.load.prompt import Prompt
from loadwise.assignor.load.source import FixedLoad, LoadSnapshot
from loadwise.assignor.participant import Participant

PATIENT_S = 60.0


class Blocking:
    """It answers when it may."""

    def __init__(self):
        self.may, self.calls = threading.Event(), 0

    def snapshot(self, topics):  # noqa: ARG002 (the interface's)
        self.calls += 1
        assert self.may.wait(PATIENT_S)
        return LoadSnapshot(load={"t": [1.0]}, unit="records")


def test_an_answer_in_time_is_the_answer():
    source = FixedLoad(load={"t": [1.0, 2.0]})
    assert Prompt(source, PATIENT_S).snapshot(["t"]) == source.snapshot(["t"])


def test_a_call_that_blocks_is_not_made_again_until_it_returns():
    source = Blocking()
    prompt = Prompt(source, 0.01)
    with pytest.raises(BadGroupError, match=r"did not return within 0\.01 s"):
        prompt.snapshot(["t"])
    with pytest.raises(BadGroupError, match="has not returned yet"):
        prompt.snapshot(["t"])
    assert source.calls == 1
    late = prompt._call
    source.may.set()
    late.join(PATIENT_S)
    prompt.limit_s = PATIENT_S
    assert prompt.snapshot(["t"]).load == {"t": [1.0]}
    assert source.calls == 2


def test_what_the_source_raises_is_raised():
    class Broken:
        def snapshot(self, topics):  # noqa: ARG002 (the interface's)
            raise ZeroDivisionError("load / 0")

    with pytest.raises(ZeroDivisionError, match="load / 0"):
        Prompt(Broken(), PATIENT_S).snapshot([])


@pytest.mark.parametrize(("session_s", "limit_s"), [(45, 1.0), (10, 1.0), (6, 0.6)])
def test_a_source_has_a_second_or_a_tenth_of_the_session(session_s, limit_s):
    source = Blocking()
    participant = Participant("weighted", load=source)
    participant.answer_within(session_s)
    assert participant.targets.load.limit_s == pytest.approx(limit_s)
    assert participant.load is source
