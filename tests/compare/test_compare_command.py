"""``loadwise compare`` from the command line, as far as it needs no broker."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import Called, invoke
from rich.console import Console
from topics import WAIT_S

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.cli.tables import table
from loadwise.compare.comparison import compare
from loadwise.compare.scenarios import scenario


def run(*arguments: str | Path) -> Called:
    return invoke(["compare", *map(str, arguments)])


def test_the_table_of_a_scenario() -> None:
    result = run("--scenario", "flights")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1] == "36 partitions, 3 members, loads in records."
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.split() and line.split()[0] in ALGORITHMS}
    assert list(rows) == list(ALGORITHMS)
    assert rows["range"][:4] == ["240,267", "112,259", "112,259", "2.14"]
    assert rows["weighted"][3] == "1.00"


def test_a_table_fits_eighty_characters_and_every_assignor_its_line() -> None:
    names = ["cooperative-weighted", "cooperative-sticky", "range"]
    shown = io.StringIO()
    comparison = compare(scenario("one-joins"), names, time.perf_counter)
    Console(width=80, file=shown).print(table(comparison, 80))
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[3:]] == names
    assert "…" not in shown.getvalue()


def test_json_for_programs_and_a_page_for_people(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("--scenario=drift", "--json", "--html", page, "--assignor=weighted", "--assignor=cooperative-sticky")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["assignor"] for row in told["assignors"]] == ["weighted", "cooperative-sticky"]
    assert (told["partitions"], told["load_unit"]) == (64, "records")
    assert told["assignors"][0]["moved"] > 0
    for row in told["assignors"]:
        given = [member["assignment"] for member in row["members"].values()]
        assert sorted(number for each in given for number in each["events"]) == list(range(64))
        assert [member["partitions"] for member in row["members"].values()] == [len(each["events"]) for each in given]
    assert page.read_text(encoding="utf-8").count("<svg") == 2


def test_files(tmp_path: Path) -> None:
    loads, case = tmp_path / "loads.csv", tmp_path / "case.json"
    loads.write_text("topic,partition,load\nt,0,6\nt,1,4\nt,2,2\n")
    case.write_text(
        '{"topics": {"t": {"partitions": 3}}, "weights": {"t": [6, 4, 2]},'
        ' "members": [{"id": "x", "topics": ["t"]}, {"id": "y", "topics": ["t"]}]}'
    )
    from_loads, from_case = (
        json.loads(run(*options, "--json").stdout)["assignors"]
        for options in (["--loads", loads, "--members", 2], [case])
    )
    highest = {row["assignor"]: row["max_load"] for row in from_loads}
    assert highest == {row["assignor"]: row["max_load"] for row in from_case}
    assert [highest[name] for name in ("range", "roundrobin", "sticky", "weighted")] == [10.0, 8.0, 8.0, 6.0]


def test_a_page_of_names_that_utf_8_has_no_bytes_for(tmp_path: Path) -> None:
    case, page = tmp_path / "case.json", tmp_path / "page.html"
    case.write_text(
        r'{"topics": {"t": {"partitions": 1}}, "members": [{"id": "x\ud800", "topics": ["t"]}]}', encoding="ascii"
    )
    result = run(case, "--html", page)
    assert result.exit_code == 0, result.output
    assert r"x\ud800" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no group given; give a case file, or --loads with --members"),
        (["--scenario", "zipf", "case.json"], "2 groups given; give a case file"),
        (["--scenario", "nope"], "argument --scenario: 'nope' is none of flights"),
        (
            ["--scenario", "zipf", "--assignor", "fair"],
            "argument --assignor: 'fair' is none of range",
        ),
        (["--loads", "loads.csv"], "--loads FILE and --members NUMBER go together"),
        (["--scenario", "zipf", "--members", "3"], "--loads FILE and --members NUMBER go together"),
        (["--group", "g"], "--bootstrap-servers HOST:PORT and --group ID go together"),
        (["missing.json"], "there is no file missing.json"),
        (["."], ". cannot be read: Is a directory"),
        (["latin.json"], "latin.json, byte 2: not UTF-8"),
        (["--loads", "bad.csv", "--members", "2"], "bad.csv, line 2, column load: 'x'; expected a finite number"),
        (["--scenario", "zipf", "--html", "no/such/page.html"], "--html no/such/page.html cannot be written: No such"),
    ],
)
def test_what_is_wrong_is_said_with_exit_status_2(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("latin.json").write_bytes(b'{"\xe9": 1}')
    Path("bad.csv").write_text("topic,partition,load\nt,0,x\n")
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("loadwise compare: ")
    assert message in result.stderr
    assert result.stdout == ""


def test_the_help_begins_with_something_to_try() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "loadwise compare --scenario flights" in result.stdout


def test_only_a_running_group_needs_a_client() -> None:
    code = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "kafka":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from loadwise.cli import main
main()
"""

    def without_kafka_python(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "compare", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)

    assert without_kafka_python("--scenario=zipf", "--json").returncode == 0
    refused = without_kafka_python("--bootstrap-servers=127.0.0.1:9", "--group=g")
    assert refused.returncode == 1
    assert refused.stderr.startswith("loadwise compare: kafka-python is not installed; get it with: pip install")


def test_an_assignor_for_small_groups_says_so_beyond_its_ceiling(tmp_path: Path) -> None:
    loads = tmp_path / "loads.csv"
    loads.write_text("topic,partition,load\n" + "".join(f"t,{number},1\n" for number in range(5001)))
    result = run("--loads", loads, "--members", "2", "--assignor", "optimal")
    assert result.exit_code == 1
    assert "loadwise compare: optimal supports up to 10,000 partitions x members" in result.output
