"""Who pays when a limit that peers share is reached: the large, slow and silent ones, not the small and busy ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from loadwise.coordinator.serving.sharing import _LEAST_AGE_S, STANDSTILL_S, SharedBytes, make_room

LIMIT = 1_000
EIGHTH = LIMIT // 8
sizes = st.integers(1, LIMIT)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, LIMIT), st.booleans(), st.integers(0, 3)), max_size=60))
def test_the_holder_with_the_most_byte_seconds_pays_while_all_go_on(steps: list[tuple[int, int, bool, int]]) -> None:
    shared: SharedBytes[int] = SharedBytes(LIMIT)
    held: dict[int, int] = {}
    since: dict[int, float] = {}
    now_s = 0.0
    for holder, size_bytes, is_next_request, passed in steps:
        now_s += STANDSTILL_S / 256 * passed
        if is_next_request or not held.get(holder):
            since[holder] = now_s
        shared.hold(holder, size_bytes, now_s, since[holder])
        held[holder] = size_bytes
        for payer, paid_bytes in shared.take_payers(now_s):
            assert sum(held.values()) > LIMIT, "no holder pays without need"
            assert paid_bytes == held.pop(payer)
            costs = [(size * (now_s - since[each] + _LEAST_AGE_S), size) for each, size in held.items()]
            assert (paid_bytes * (now_s - since[payer] + _LEAST_AGE_S), paid_bytes) >= max(costs, default=(0, 0))
        assert shared.total_bytes == sum(held.values()) <= LIMIT
        assert {each: size for each in held if (size := shared.size_of(each))} == {k: v for k, v in held.items() if v}
        assert set(shared.holders) == {each for each, size in held.items() if size}


@given(
    silent=st.lists(sizes, max_size=30),
    dribbles=st.booleans(),
    seconds=st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(20, LIMIT)), max_size=4), max_size=30),
)
def test_nobody_who_goes_on_pays_for_those_who_stand_still(
    silent: list[int], dribbles: bool, seconds: list[list[tuple[int, int]]]
) -> None:
    """However many silent peers there are, small or large, and whatever the others send below seven eighths."""
    shared: SharedBytes[str] = SharedBytes(LIMIT)
    now_s = 0.0
    for number, size_bytes in enumerate(silent):
        shared.hold(f"silent {number}", size_bytes, now_s, now_s)
        for _ in shared.take_payers(now_s):
            pass
    held: dict[str, int] = {}
    for arrivals in seconds:
        now_s += STANDSTILL_S * 1.5
        for holder in list(shared.holders):
            if holder not in held and dribbles and shared.size_of(holder) > 300:  # a byte is no progress then
                shared.hold(holder, shared.size_of(holder) ^ 1, now_s, 0)  # to and fro: more would add up
        for holder, size_bytes in held.items():  # all of them go on
            shared.hold(holder, size_bytes + size_bytes // 100 + 1, now_s, 0)
            held[holder] = shared.size_of(holder)
        for number, size_bytes in arrivals:
            held[f"honest {number}"] = size_bytes
            shared.hold(f"honest {number}", size_bytes, now_s, now_s)
        while sum(held.values()) > LIMIT - EIGHTH:  # some are answered
            shared.drop(held.popitem()[0])
        payers = [payer for payer, _ in shared.take_payers(now_s)]
        assert not [payer for payer in payers if payer in held]
        assert shared.total_bytes <= LIMIT


@given(
    st.lists(sizes, min_size=1, max_size=30),
    st.lists(st.integers(1, 3), min_size=1, max_size=30),
)
def test_a_few_small_silent_peers_do_not_pay_for_a_large_one(large: list[int], silent: list[int]) -> None:
    shared: SharedBytes[str] = SharedBytes(LIMIT)
    for number, size_bytes in enumerate(silent):
        shared.hold(f"silent {number}", size_bytes, 0, 0)
    now_s = STANDSTILL_S * 2
    for number, size_bytes in enumerate(large):
        shared.hold(f"large {number}", 10 * size_bytes, now_s, now_s)
        assert all(payer.startswith("large") for payer, _ in shared.take_payers(now_s))


@dataclass(eq=False)
class Place:
    owner: str
    is_stranger: bool
    active_at_s: float


@given(
    most=st.integers(1, 40),
    arrivals=st.lists(st.tuples(st.sampled_from("aaab"), st.booleans(), st.integers(0, 9)), max_size=120),
)
def test_a_new_connection_finds_a_place(most: int, arrivals: list[tuple[str, bool, int]]) -> None:
    seats: dict[Place, None] = {}
    room = 0
    for now_s, (owner, is_stranger, active) in enumerate(arrivals):
        for seat in list(seats)[-active:]:
            seat.active_at_s = now_s
        newcomer = Place(owner, True, now_s + 0.5)
        seats[newcomer] = None
        room -= 1
        leaving: object = ()
        if room < 0:
            before = list(seats)
            leaving, room = make_room(seats, most)
            check(before, leaving, most)
            for seat in leaving:
                del seats[seat]
        assert len(seats) <= most
        assert sum(seat.is_stranger for seat in seats) <= (most + 1) // 2
        if most > 1:
            assert newcomer in seats
        newcomer.is_stranger = is_stranger


def check(seats: list[Place], leaving: object, most: int) -> None:
    assert isinstance(leaving, list | tuple)
    strangers = [seat for seat in seats if seat.is_stranger]
    too_strange = len(strangers) > (most + 1) // 2
    among = strangers if too_strange else seats
    assert bool(leaving) == (too_strange or len(seats) > most)
    numbers = Counter(seat.owner for seat in among)
    for seat in leaving:
        assert seat in among, "peers that are known do not pay for strangers"
        stay = [each for each in among if each not in leaving]
        assert not [each for each in stay if numbers[each.owner] > numbers[seat.owner]], "the largest owner pays"
        same = [each for each in stay if numbers[each.owner] == numbers[seat.owner]]
        assert not [each for each in same if each.active_at_s < seat.active_at_s], "the least active one pays"


def test_one_seat_in_a_hundred_is_cleared_together() -> None:
    seats = [Place("a", False, number) for number in range(1_001)]
    leaving, room = make_room(seats, 1_000)
    assert (list(leaving), room) == (seats[:11], 10)
