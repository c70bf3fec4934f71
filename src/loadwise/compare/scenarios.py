"""Built-in situations, so that there is something to compare before there is a Kafka.

Nothing is drawn by chance: the numbers are the same on every machine and in every release.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

from loadwise.assignor.model import Member
from loadwise.compare.errors import BadInputError
from loadwise.compare.situation import Situation
from loadwise.dispatcher.keys import partition_of
from loadwise.dispatcher.spread_keys import KeySpreader, SpreadKeys

# What `loadwise demo` publishes: flights by carrier, partitioned by Kafka's murmur2; partitions left out are empty.
_FLIGHTS = {
    3: 3_974,
    8: 20_536,
    12: 54_635,
    15: 80_570,
    17: 5_162,
    18: 18_460,
    21: 32_729,
    22: 601,
    23: 48_110,
    24: 685,
    27: 342,
    33: 32,
    34: 58_665,
    35: 12_275,
}
_FLIGHT_PARTITIONS = 36

_PARTITIONS = 64
_STRIDE = 27  # odd, so that partition * stride mod 64 comes by every rank once
_EXPONENT = 0.8
_HEAVIEST = 100_000

_HOT_KEYS = 10_000
_HOT_EXPONENT = 1.2
_HOT_RECORDS = 20_000
_HOT_PARTITIONS = 36
_GOLDEN = 0.6180339887498949  # its multiples fall evenly between 0 and 1, in no order


def scenario(name: str) -> Situation:
    """A built-in situation by its name. Raises `BadInputError`."""
    try:
        return SCENARIOS[name]()
    except KeyError:
        raise BadInputError(f"no scenario is called {name!r}; choose from {', '.join(SCENARIOS)}") from None


def _flights() -> Situation:
    loads = [float(_FLIGHTS.get(partition, 0)) for partition in range(_FLIGHT_PARTITIONS)]
    return Situation(
        about="336,776 flights keyed by carrier: 14 of 36 partitions get any; 3 members start.",
        members=_members("flights", 3),
        partitions={"flights": _FLIGHT_PARTITIONS},
        load={"flights": loads},
        load_unit="records",
    )


def _zipf() -> Situation:
    return _events(f"{_PARTITIONS} partitions, the loads by Zipf's law (exponent {_EXPONENT}); 6 members start.", 6)


def _one_leaves() -> Situation:
    return _events(
        "The group of the scenario zipf, settled under each assignor; then one of the 6 members leaves.",
        6,
        gone="member-3",
        earlier=_zipf(),
    )


def _one_joins() -> Situation:
    return _events(
        "The group of the scenario zipf, settled under each assignor; then a 7th member joins.", 7, earlier=_zipf()
    )


def _drift() -> Situation:
    loads = _zipf_loads()
    loads[::4], loads[1::4] = loads[1::4], loads[::4]
    return _events(
        "The group of the scenario zipf, settled under each assignor; then half of the partitions swap their loads.",
        6,
        loads=loads,
        earlier=_zipf(),
    )


def _capacity() -> Situation:
    return _events(
        "The group of the scenario zipf, but members 1 and 2 do three times what each of the others does.",
        6,
        capacity=(3.0, 3.0),
    )


def _hot_key() -> Situation:
    spreader = KeySpreader(SpreadKeys(choices=2), _HOT_PARTITIONS)
    return Situation(
        about=f"{_HOT_KEYS:,} keys by Zipf's law (exponent {_HOT_EXPONENT}), placed by murmur2, or by a dispatcher with"
        " SpreadKeys(choices=2).",
        members=_members("clicks", 6),
        partitions={"clicks": _HOT_PARTITIONS},
        load={"clicks": _clicks(lambda key: partition_of(key, _HOT_PARTITIONS))},
        spread={"clicks": _clicks(lambda key: spreader.partition(key, 1))},
        load_unit="records",
    )


SCENARIOS: dict[str, Callable[[], Situation]] = {
    "flights": _flights,
    "zipf": _zipf,
    "one-leaves": _one_leaves,
    "one-joins": _one_joins,
    "drift": _drift,
    "capacity": _capacity,
    "hot-key": _hot_key,
}
"""Every built-in situation, by name."""


def _events(
    about: str,
    members: int,
    *,
    loads: Sequence[float] | None = None,
    capacity: Sequence[float] = (),
    gone: str | None = None,
    earlier: Situation | None = None,
) -> Situation:
    return Situation(
        about=about,
        members=[member for member in _members("events", members, capacity) if member.id != gone],
        partitions={"events": _PARTITIONS},
        load={"events": list(_zipf_loads() if loads is None else loads)},
        load_unit="records",
        earlier=earlier,
    )


def _clicks(partition: Callable[[bytes], int]) -> list[float]:
    """The records of each partition of a topic whose keys are hot."""
    upto = list(accumulate(rank**-_HOT_EXPONENT for rank in range(1, _HOT_KEYS + 1)))
    loads = [0.0] * _HOT_PARTITIONS
    for number in range(_HOT_RECORDS):
        loads[partition(b"key-%d" % bisect(upto, number * _GOLDEN % 1 * upto[-1]))] += 1
    return loads


def _zipf_loads() -> list[float]:
    ranks = [partition * _STRIDE % _PARTITIONS + 1 for partition in range(_PARTITIONS)]
    return [float(round(_HEAVIEST / rank**_EXPONENT)) for rank in ranks]


def _members(topic: str, count: int, capacity: Sequence[float] = ()) -> list[Member]:
    """So many equal members, but for the first, whose capacities are given."""
    capacities = [*capacity, *[1.0] * (count - len(capacity))]
    return [
        Member(id=f"member-{number}", topics=[topic], capacity=each) for number, each in enumerate(capacities, start=1)
    ]
