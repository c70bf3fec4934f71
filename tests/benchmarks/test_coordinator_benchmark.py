"""The coordinator's benchmark runs to its end; how fast is no test's business."""

from __future__ import annotations

import pytest

from benchmarks.coordinator import joins, rates, records
from benchmarks.coordinator.__main__ import main
from benchmarks.coordinator.driver import PARTITIONS, TOPIC, Driver, DriverError, Member, Script
from loadwise.coordinator import Coordinator


def test_it_says_how_fast_each_phase_was(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--partitions", "1000", "--members", "5", "--beats", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("consumer protocol (KIP-848), 1,000 partitions, 5 members")
    assert sum(line.endswith("/s") for line in lines) == 8


@pytest.mark.long
def test_it_says_what_clients_see_over_sockets_of_each_variant(capsys: pytest.CaptureFixture[str]) -> None:
    rates.main(["--members", "20", "--seconds", "0.1", "--sizes", "20,40", "--no-kafka"])
    lines = capsys.readouterr().out.splitlines()
    for variant in ("uvloop", "asyncio", "disk", "TLS", "TLS+disk"):
        rows = [line for line in lines if line.startswith(f"  loadwise, {variant} ")]
        assert len(rows) == 8
        assert "KIP-848" in rows[-1]
        assert sum("heartbeats a second" in row for row in rows) == 2
    assert sum(line.startswith("| 20 members of KIP-848") and " s |" in line for line in lines) == 1


@pytest.mark.long
def test_it_says_how_fast_groups_form_from_several_processes(capsys: pytest.CaptureFixture[str]) -> None:
    joins.main(["--shapes", "1x40,2x20", "--rounds", "1", "--no-kafka"])
    lines = capsys.readouterr().out.splitlines()
    for variant in ("uvloop", "asyncio", "disk", "TLS"):
        assert sum(line.startswith(f"  loadwise, {variant} ") and " generation " in line for line in lines) == 4
    [leave] = (line.split("|") for line in lines if line.startswith("| 2 groups of 20 10 % leave"))
    assert all(float(figure.removesuffix(" s ")) > 0 for figure in leave[2:-1])


def test_it_writes_and_reads_records_of_each_size(capsys: pytest.CaptureFixture[str]) -> None:
    records.main(["--megabytes", "1", "--no-kafka"])
    lines = capsys.readouterr().out.splitlines()
    rows = dict(line.strip("| ").rsplit("|", 1) for line in lines if line.startswith(("| produce", "| fetch")))
    assert len(rows) == 2 * len(records.CASES)
    assert all(float(rate) > 0 for rate in rows.values())


def test_an_error_of_the_broker_ends_the_measurement(broker: str) -> None:
    with Driver(broker) as driver, pytest.raises(DriverError, match="JoinGroup got error 24"):
        driver.join(driver.members(1, ""))


def test_who_joins_after_a_generation_is_complete_is_not_waited_for_in_vain(broker: str, group_id: str) -> None:
    with Driver(broker) as driver:
        first, later = driver.members(1, group_id), driver.members(1, group_id)
        driver.join(first)

        def join_later(member: Member) -> Script:
            if member in later:
                yield from member.join()

        driver.run([*first, *later], join_later, meanwhile=Member.follow)
        assert first[0].generation == later[0].generation


def test_a_member_that_has_its_share_gives_up_what_others_wait_for() -> None:
    """As the first member of a KIP-848 group has, which is given all partitions before anybody else comes."""
    with Coordinator({TOPIC: PARTITIONS}).in_thread() as coordinator, Driver(coordinator.bootstrap_servers) as driver:
        first, later = driver.members(1, "g"), driver.members(1, "g")
        driver.run(first, lambda member: member.join_consumer_group(1))

        def join_later(member: Member) -> Script:
            if member in later:
                yield from member.join_consumer_group(2)

        driver.run([*first, *later], join_later, meanwhile=lambda member: member.join_consumer_group(2))
        given = [sum(len(each.partitions) for each in member.assigned or ()) for member in (*first, *later)]
    assert given == [PARTITIONS // 2] * 2
