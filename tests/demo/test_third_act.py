"""The third act, in two seconds."""

from __future__ import annotations

from loadwise.demo.third_act import Delays, picture, play


async def test_the_producer_with_a_dispatcher_waits_less_for_the_slow_broker() -> None:
    shown: list[float] = []
    own, ours = await play(2.1, shown.append)
    assert [own.partitioner, ours.partitioner] == ["aiokafka's own", "loadwise"]
    assert min(len(own.taken), len(ours.taken)) > 300
    assert ours.mean_ms(0.7, 1.4) < own.mean_ms(0.7, 1.4)
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
