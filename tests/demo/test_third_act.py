"""The third act, in about a second."""

from __future__ import annotations

import time

from topics import WAIT_S

from loadwise.demo.third_act import SLOWED_MS, Delays, picture, play


async def test_both_producers_send_while_a_broker_is_slow() -> None:
    """What the dispatcher saves is measured in virtual time, in tests/dispatcher/test_virtual.py."""
    slowest_ms, deadline = 0.0, time.monotonic() + WAIT_S
    while slowest_ms < SLOWED_MS:  # again if the machine stood still for the 0.4 s in which the broker is slow
        assert time.monotonic() < deadline, f"no record took longer than {slowest_ms} ms"
        shown: list[float] = []
        own, ours = await play(1.2, shown.append)
        slowest_ms = max((1000 * took_s for _, took_s in own.taken), default=0.0)
    assert [own.partitioner, ours.partitioner] == ["aiokafka's own", "loadwise"]
    assert ours.taken
    assert shown == sorted(shown)


def test_the_picture_has_one_scale() -> None:
    own = Delays("aiokafka's own", [(at / 10, 0.100 if 10 <= at < 20 else 0.010) for at in range(30)])
    ours = Delays("loadwise", [(at / 10, 0.010) for at in range(30)])
    assert picture([own, ours], 3.0, columns=6) == [
        " aiokafka's own ▂▂██▂▂ 100 ms while broker 1 is slow",
        "       loadwise ▂▂▂▂▂▂ 10 ms while broker 1 is slow",
    ]
    assert picture([Delays("a"), Delays("b")], 3.0, columns=2) == [
        "              a ▁▁ 0 ms while broker 1 is slow",
        "              b ▁▁ 0 ms while broker 1 is slow",
    ]
