"""The coordinator's benchmark runs to its end; how fast is no test's business."""

from __future__ import annotations

import pytest

from benchmarks.coordinator.__main__ import main
from benchmarks.coordinator.driver import PARTITIONS, TOPIC, Driver, DriverError, Member, Script
from benchmarks.coordinator.records import CASES
from loadwise.coordinator import Coordinator


@pytest.mark.long
def test_it_measures_both_event_loops_a_data_directory_and_tls(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--members", "20", "--seconds", "0.1", "--shapes", "1x40,2x20", "--rounds", "1", "--megabytes", "1"]
    main([*small, "--no-kafka"])
    lines = capsys.readouterr().out.splitlines()
    tables = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("|")]
    figures = {name: cells for name, *cells in tables if cells[0][0].isdigit()}
    assert [len(cells) for cells in figures.values()] == [4] * 9 + [1] * 8
    assert {
        "20 members of KIP-848, to all balanced",
        "process start until it listens",
        "2 groups of 20 10 % leave, to stable",
    } <= figures.keys()
    assert {f"{what}, {case.name}, MB/s" for what in ("produce", "fetch") for case in CASES} <= figures.keys()
    assert all(float(cell.split()[0].replace(",", "")) > 0 for cells in figures.values() for cell in cells)


def address(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def test_an_error_of_the_broker_ends_the_measurement(broker: str) -> None:
    with Driver(address(broker), None) as driver, pytest.raises(DriverError, match="JoinGroup got error 24"):
        driver.join(driver.members(1, ""))


def test_who_joins_after_a_generation_is_complete_is_not_waited_for_in_vain(broker: str, group_id: str) -> None:
    with Driver(address(broker), None) as driver:
        first, later = driver.members(1, group_id), driver.members(1, group_id)
        driver.join(first)

        def join_later(member: Member) -> Script:
            if member in later:
                yield from member.join()

        driver.run([*first, *later], join_later, meanwhile=Member.follow)
        assert first[0].generation == later[0].generation


def test_a_member_that_has_its_share_gives_up_what_others_wait_for() -> None:
    """As the first member of a KIP-848 group has, which is given all partitions before anybody else comes."""
    with (
        Coordinator({TOPIC: PARTITIONS}).in_thread() as coordinator,
        Driver(address(coordinator.bootstrap_servers), None) as driver,
    ):
        first, later = driver.members(1, "g"), driver.members(1, "g")
        driver.run(first, lambda member: member.join_consumer_group(1))

        def join_later(member: Member) -> Script:
            if member in later:
                yield from member.join_consumer_group(2)

        driver.run([*first, *later], join_later, meanwhile=lambda member: member.join_consumer_group(2))
        given = [sum(len(each.partitions) for each in member.assigned or ()) for member in (*first, *later)]
    assert given == [PARTITIONS // 2] * 2
