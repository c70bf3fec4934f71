"""The coordinator's clock by itself, and a running coordinator whose clock a test stops and steps."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from client_messages import client_request
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse, JoinGroupResponse
from peers import Peer, answers, beat, fetch, join

from loadwise.coordinator import Coordinator
from loadwise.coordinator.clock import Clock


@given(
    st.lists(
        st.one_of(
            st.just("freeze"),
            st.just("resume"),
            st.tuples(st.just("pass"), st.integers(0, 50)),
            st.tuples(st.just("advance"), st.integers(-50, 50)),
        )
    )
)
def test_it_never_goes_back_and_moves_only_when_it_is_to(steps: list[object]) -> None:
    source = 1000
    clock = Clock(lambda: (source + 0.5) / 1000)
    expected = 1000
    frozen = False
    for step in steps:
        match step:
            case "freeze":
                clock.freeze()
                frozen = True
            case "resume":
                clock.resume()
                frozen = False
            case ("pass", int(ms)):
                source += ms
                expected += 0 if frozen else ms
            case ("advance", int(ms)):
                clock.advance_to(clock.now_ms() + ms)
                expected += max(ms, 0)
        assert (clock.now_ms(), clock.is_frozen) == (expected, frozen)


@pytest.fixture
async def coordinator() -> AsyncIterator[Coordinator]:
    async with Coordinator(topics={"t": 1}) as running:
        running.clock.freeze()
        yield running


async def test_a_blocked_long_poll_ends_by_the_stepped_clock_and_by_no_other(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    peer.send(fetch(max_wait_ms=10))
    while coordinator.cluster.fetches.next_deadline_ms is None:
        assert await answers(other)
    coordinator.clock.step(9)
    assert coordinator.cluster.fetches.next_deadline_ms is not None
    coordinator.clock.step(1)
    assert not (await peer.read(FetchResponse, 11)).responses[0].partitions[0].records


async def test_sessions_end_by_the_stepped_clock_each_at_its_own_time(coordinator: Coordinator, peer: Peer) -> None:
    start_ms = coordinator.clock.now_ms
    peer.send(join("g", session_timeout_ms=10_000))
    joined = await peer.read(JoinGroupResponse, 3)
    coordinator.clock.step(9_999)
    assert [each.member_id for each in coordinator.groups.get("g").members] == [joined.member_id]
    coordinator.clock.step(100_000)
    group = coordinator.groups.get("g")
    assert (group.state, group.members, coordinator.clock.now_ms - start_ms) == ("Empty", [], 109_999)
    assert [moment.at_ms - start_ms for moment in group.history] == [0, 0, 10_000, 10_000]


async def test_a_clock_that_is_resumed_lets_time_pass_again(coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    peer.send(fetch(max_wait_ms=1))
    while coordinator.cluster.fetches.next_deadline_ms is None:
        assert await answers(other)
    coordinator.clock.resume()
    assert not (await peer.read(FetchResponse, 11)).responses[0].partitions[0].records


async def test_a_running_clock_can_be_set_forward_too() -> None:
    async with Coordinator(topics={"t": 1}) as running:
        peer, other = await Peer.connect(running), await Peer.connect(running)
        peer.send(fetch(max_wait_ms=3_600_000))
        while running.cluster.fetches.next_deadline_ms is None:
            assert await answers(other)
        running.clock.step(3_600_000)
        assert (await peer.read(FetchResponse, 11)).error_code == 0
        with pytest.raises(ValueError, match="cannot go back"):
            running.clock.step(-1)
        with pytest.raises(ValueError, match="the limit is 31,622,400,000 ms"):
            running.clock.step(10**11)
        with pytest.raises(TypeError, match="a step of '3'; it must be a whole number of milliseconds"):
            running.clock.step("3")  # type: ignore[arg-type]
        await peer.close()
        await other.close()


async def test_a_delay_lasts_by_the_coordinators_clock(coordinator: Coordinator, peer: Peer, other: Peer) -> None:
    fault = coordinator.faults.delay("Fetch", 500)
    peer.send(fetch(max_wait_ms=0))
    while fault.hits == 0:
        assert await answers(other)
    coordinator.clock.step(500)
    assert (await peer.read(FetchResponse, 11)).error_code == 0


async def test_a_disconnect_closes_that_connection_and_no_other(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    coordinator.faults.disconnect("Heartbeat")
    peer.send(beat())
    assert await peer.is_hung_up_on()
    assert await answers(other)


async def test_behind_a_dropped_request_all_is_silent_on_that_connection_and_no_other(
    coordinator: Coordinator, peer: Peer, other: Peer
) -> None:
    dropped = coordinator.faults.drop("Fetch", client_id="peer")
    behind = coordinator.faults.disconnect("Metadata")
    peer.send(fetch(max_wait_ms=0))
    peer.send(client_request("Metadata", 4))
    while dropped.hits == 0:
        assert await answers(other)
    assert await answers(other)
    assert behind.hits == 0
