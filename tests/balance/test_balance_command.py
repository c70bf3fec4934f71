"""``loadwise balance`` from the command line, as far as it needs no broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Called, invoke


def run(*arguments: str | Path) -> Called:
    return invoke(["balance", *map(str, arguments)])


def given() -> dict[str, Any]:
    """Broker 1 leads both partitions; broker 3 has nothing."""
    return {
        "brokers": [{"id": 1, "rack": "a"}, {"id": 2}, {"id": 3, "capacity": {"disk_bytes": 1e12}}],
        "partitions": [
            {
                "topic": "orders",
                "partition": number,
                "replicas": [1, 2],
                "leader": 1,
                "size_bytes": 3e9,
                "bytes_in_per_s": 1e6,
                "bytes_out_per_s": 2e6,
            }
            for number in range(6)
        ],
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(given()))
    return path


def test_the_table_and_the_files_of_kafkas_tools(cluster: Path, tmp_path: Path) -> None:
    result = run(cluster, "--out", tmp_path / "plan")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.split("The plan")[0].splitlines() if line}
    assert rows["1"][:4] == ["a", "6", "→", "2"]
    assert rows["3"] == ["-", "0", "→", "2", "0.00", "→", "1.00", "0.00", "→", "1.00", "0.00", "→", "1.00"]
    assert rows["mean"] == ["4", "MB/s", "6", "MB/s", "12", "GB"]
    assert "The plan changes 4 leaders and moves 4 replicas (12 GB, 33.3% of all)." in result.stdout
    assert f"kafka-reassign-partitions.sh --bootstrap-server HOST:PORT --reassignment-json-file {tmp_path}" in (
        result.stdout
    )
    reassignment = json.loads((tmp_path / "plan" / "batch-01.json").read_text())
    election = json.loads((tmp_path / "plan" / "batch-01-leaders.json").read_text())
    assert reassignment["version"] == 1
    assert {frozenset(each) for each in reassignment["partitions"]} == {frozenset({"topic", "partition", "replicas"})}
    assert {frozenset(each) for each in election["partitions"]} == {frozenset({"topic", "partition"})}
    placed = [set(each["replicas"]) for each in reassignment["partitions"]]
    assert sum(3 in each for each in placed) == 4


def test_files_of_an_earlier_plan_are_removed(cluster: Path, tmp_path: Path) -> None:
    """Kafka's tools would execute them, and refuse an empty one: "Partition reassignment list cannot be empty"."""
    out = tmp_path / "plan"
    assert run(cluster, "--out", out, "--moves-per-broker", "1").exit_code == 0
    assert len(list(out.glob("batch-??.json"))) == 4
    elected_only = given()
    elected_only["partitions"] = elected_only["partitions"][:2]
    elected_only["partitions"][1].update(replicas=[2, 1], leader=1)
    elected_only["brokers"] = elected_only["brokers"][:2]
    cluster.write_text(json.dumps(elected_only))
    assert "kafka-reassign" not in run(cluster, "--out", out).stdout
    assert [each.name for each in out.iterdir()] == ["batch-01-leaders.json"]


def test_each_batch_has_its_bytes_and_a_time_at_the_throttle(cluster: Path) -> None:
    told = run(cluster, "--moves-per-broker", "2", "--throttle", "50MB")
    table = [line.split() for line in told.stdout.splitlines() if line.endswith("min")]
    assert [row[0] for row in table] == ["1", "2"]
    assert all(row[3:] == ["6", "GB", "6", "GB", "2", "min"] for row in table)
    batches = json.loads(run(cluster, "--moves-per-broker", "2", "--throttle", "50MB", "--json").stdout)["batches"]
    assert [(batch["moved_bytes"], batch["estimated_s"]) for batch in batches] == [(6e9, 120.0)] * 2


def test_a_partition_without_space_is_named(cluster: Path) -> None:
    content = given()
    for broker in content["brokers"]:
        broker["capacity"] = {"disk_bytes": 20e9}
    cluster.write_text(json.dumps(content))
    told = run(cluster, "--remove", "1")
    assert "moves 5 replicas" in told.stdout
    named = re.search(r"Partition orders-(\d) \(3 GB\) cannot move to broker 3: its disk holds (.*)\n", told.stdout)
    assert named is not None
    assert named[2].startswith(
        "15 GB, and its headroom is 16 GB. Another 2 GB would be enough: delete data there, state more"
    )
    blocked = json.loads(run(cluster, "--remove", "1", "--json").stdout)["blocked"]
    assert blocked == [{"topic": "orders", "partition": int(named[1]), "broker": 3, "missing_bytes": 2e9}]
    assert json.loads(run(cluster, "--remove", "1", "--headroom", "1", "--json").stdout)["blocked"] == []


@pytest.mark.parametrize(
    ("flags", "culprit"),
    [
        (["--add", "9"], "--add names broker 9, which the cluster does not have; its brokers are 1, 2, 3"),
        (["--add", "3", "--remove", "3"], "--add and --remove both name broker 3; keep one of them"),
        (["--add", "x"], "'x' is not a list of broker ids such as 7,8"),
        (["--exclude-topics", "ordres"], "no topic matches 'ordres'; see kafka-topics.sh --list"),
        (["--exclude-topics", "orders,"], "'orders,' has an empty name"),
        (["--max-moved", "many"], "'many' is not a number of bytes such as 5e11 or 500GB"),
        (["--headroom", "1.2"], "'1.2' is not above 0 and at most 1"),
        (["--throttle", "0"], "'0' is not a rate of at least one byte per second"),
    ],
)
def test_wrong_flags_name_the_culprit(flags: list[str], culprit: str, cluster: Path) -> None:
    result = run(cluster, *flags)
    assert (result.exit_code, result.stdout) == (2, "")
    assert culprit in result.stderr


def test_what_is_moved_stays_within_the_bytes_that_were_given(cluster: Path) -> None:
    assert json.loads(run(cluster, "--max-moved", "7GB", "--json").stdout)["moved_bytes"] == 6e9
    assert json.loads(run(cluster, "--max-moved", "0", "--json").stdout)["moved_bytes"] == 0


def test_json_for_programs(cluster: Path) -> None:
    told = json.loads(run(cluster, "--json").stdout)
    assert told["moved_bytes"] == 12e9
    assert told["brokers"][2]["before"] == {"bytes_in_per_s": 0, "bytes_out_per_s": 0, "disk_bytes": 0}
    assert told["brokers"][2]["after"] == {"bytes_in_per_s": 4e6, "bytes_out_per_s": 6e6, "disk_bytes": 12e9}
    assert len(told["leader_election"]["partitions"]) == 4


def test_a_stated_capacity_is_kept(cluster: Path, tmp_path: Path) -> None:
    capacities = tmp_path / "capacities.json"
    capacities.write_text('{"3": {"disk_bytes": 7e9}}')
    told = json.loads(run(cluster, "--capacities", capacities, "--headroom", "0.9", "--json").stdout)
    assert told["brokers"][2]["after"]["disk_bytes"] == 6e9


def test_a_saved_cluster_is_planned_again_alike(cluster: Path, tmp_path: Path) -> None:
    content = given()
    content["partitions"][0] |= {"bytes_in_per_s": 1e6 / 3, "size_bytes": 3e9 / 7}
    cluster.write_text(json.dumps(content))
    capacities, saved = tmp_path / "capacities.json", tmp_path / "saved.json"
    capacities.write_text('{"3": {"disk_bytes": 7e9}}')
    told = run(cluster, "--capacities", capacities, "--save", saved, "--json")
    assert told.exit_code == 0
    assert run(saved, "--json").stdout == told.stdout
    again = tmp_path / "again.json"
    assert run(saved, "--save", again).exit_code == 0
    assert again.read_text() == saved.read_text()
    assert "cannot be written" in run(cluster, "--save", tmp_path).stderr


def test_a_file_may_begin_with_a_byte_order_mark(cluster: Path) -> None:
    told = run(cluster, "--json").stdout
    cluster.write_text(cluster.read_text(), encoding="utf-8-sig")
    assert run(cluster, "--json").stdout == told


def _without(name: str) -> dict[str, Any]:
    changed = given()
    del changed["partitions"][2][name]
    return changed


def _with(**fields: object) -> dict[str, Any]:
    changed = given()
    changed["partitions"][2].update(fields)
    return changed


@pytest.mark.parametrize(
    ("content", "culprit"),
    [
        (_without("size_bytes"), "cluster.json: partitions[2].size_bytes is missing; expected a number"),
        (_with(sise_bytes=1), "partitions[2].sise_bytes is not a field (did you mean 'size_bytes'?)"),
        (_with(leader=None), "partition orders-2 has no leader; start a broker with an in-sync replica, one of 1, 2"),
        (_with(leader=3), "partition orders-2 is led by broker 3, which has no replica of it"),
        (_with(replicas=[1, 4]), "partition orders-2 has a replica on broker 4, which is not up; start the broker"),
        (_with(replicas=[1, 1]), "partition orders-2 has two replicas on one broker: 1, 1"),
        (_with(replicas=[]), "partition orders-2 has no replicas"),
        (_with(partition=1), "partition orders-1 is given 2 times; keep one of them"),
        (_with(size_bytes=-1), "partitions[2].size_bytes is -1; expected 0 or more"),
        (_with(size_bytes=float("nan")), "partitions[2].size_bytes is nan; the largest number allowed is 1e+18"),
        (_with(partition="2"), "partitions[2].partition is '2'; expected a whole number"),
        ({"brokers": [], "partitions": []}, "the cluster has no brokers"),
        ({"brokers": []}, "cluster.json: partitions is missing; expected a list"),
        ([], "cluster.json is []; expected an object"),
    ],
)
def test_a_wrong_cluster_is_one_line_that_names_the_culprit(content: object, culprit: str, cluster: Path) -> None:
    cluster.write_text(json.dumps(content))
    result = run(cluster)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"loadwise balance: {cluster}")
    assert culprit in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("capacity", [[], 0, "", False])
def test_a_capacity_that_is_not_an_object(capacity: object, cluster: Path) -> None:
    content = given()
    content["brokers"][0]["capacity"] = capacity
    cluster.write_text(json.dumps(content))
    result = run(cluster)
    assert result.exit_code == 2
    assert f"brokers[0].capacity is {capacity!r}; expected an object" in result.stderr


@pytest.mark.parametrize(
    ("capacities", "status", "culprit"),
    [
        ('{"5": {}}', 2, "a capacity is stated for broker 5, which the cluster does not have; its brokers are 1, 2, 3"),
        ('{"1": {"disk_byte": 5}}', 2, "capacities.json: 1.disk_byte is not a field (did you mean 'disk_bytes'?)"),
        ('{"one": {}}', 2, "'one' is not a broker id"),
        ('{"1": {"disk_bytes": 1}, "2": {"disk_bytes": 16e9}}', 1, "no plan was found that keeps broker"),
        ('{"1": {"disk_bytes": 1}, "01": {"disk_bytes": 5e12}}', 2, "'01' is not a broker id"),
        ('{"1": {"disk_bytes": 1}, "1": {"disk_bytes": 5e12}}', 2, "'1' is given twice; keep one of them"),
        ("{", 2, "capacities.json, line 1, column 2: not JSON"),
    ],
)
def test_wrong_capacities(capacities: str, status: int, culprit: str, cluster: Path, tmp_path: Path) -> None:
    path = tmp_path / "capacities.json"
    path.write_text(capacities)
    result = run(cluster, "--capacities", path)
    assert (result.exit_code, result.stdout) == (status, "")
    assert culprit in result.stderr


def test_a_page_has_a_picture_of_each_resource(cluster: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    result = run(cluster, "--html", page)
    assert f"Charts: {page}" in result.stdout
    pictures = re.findall(r"<svg.*?</svg>", page.read_text(encoding="utf-8"), re.DOTALL)
    bars = [each for picture in pictures for each in ElementTree.fromstring(picture).iter("rect")]
    assert len(bars) == len(("bytes in", "bytes out", "disk")) * len(("before", "after")) * len(given()["brokers"])
    titles = {each.findtext("title"): float(each.attrib["height"]) for each in bars}
    assert titles["broker 3 before: 0 B"] == 0
    assert titles["broker 1 before: 18 GB"] == pytest.approx(18 / 12 * titles["broker 3 after: 12 GB"], rel=0.01)
    assert run(cluster, "--html", tmp_path).exit_code == 2


def test_a_partition_that_is_too_large_for_any_broker_is_told(cluster: Path) -> None:
    cluster.write_text(json.dumps(_with(size_bytes=90e9)))
    told = run(cluster).stdout
    assert "Brokers" in told
    assert "times the mean of disk: one replica alone is" in told


def test_a_folder_that_cannot_be_written(cluster: Path) -> None:
    result = run(cluster, "--out", cluster)
    assert result.exit_code == 2
    assert "cannot be written" in result.stderr
