"""What every command line is expected to have: help, version, completion, refusals that help, statuses."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from command_line import invoke
from packaging.requirements import Requirement

import loadwise
from loadwise.cli import COMMANDS, demo, module_of, parser_of
from loadwise.installation import pip_install

ROOT = Path(__file__).resolve().parents[2]

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({!r})); from loadwise.cli import main; main()"
OPTIONAL = ["rich", "kafka", "aiokafka", "confluent_kafka", "pyspark", "h11", "crc32c", "re2", "cramjam", "cattrs"]


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version(option: str) -> None:
    assert invoke([option]).stdout == f"loadwise {loadwise.__version__}\n"


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(command: list[str], option: str) -> None:
    shown = invoke([*command, option])
    assert shown.exit_code == 0
    assert shown.stdout.startswith(" ".join(["usage:", "loadwise", *command]))
    assert "default: None" not in shown.stdout
    if command:
        assert "example" in shown.stdout
    else:
        assert all(name in shown.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["assign"], ["compare", "--scenario", "flights"], ["balance", "--help"]]
)
def test_numpy_is_all_that_these_need(words: list[str]) -> None:
    case = b'{"strategy": "weighted", "topics": {"t": {"partitions": 1}}, "members": [{"id": "a", "topics": ["t"]}]}'
    command = [sys.executable, "-c", WITHOUT.format(OPTIONAL), *words]
    ran = subprocess.run(command, input=case, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout


@pytest.mark.parametrize("command", ["demo", "watch --bootstrap-servers x:1 --group g"])
def test_a_screen_without_rich_names_the_extra(command: str) -> None:
    program = [sys.executable, "-c", WITHOUT.format(["rich"]), *command.split()]
    ran = subprocess.run(program, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "needs rich, which is not installed; get it with: pip install" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_the_demo_names_all_libraries_that_are_missing_at_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(["kafka", "confluent_kafka", "h11"]), "demo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "loadwise demo: it needs kafka-python, confluent-kafka, h11, which are not installed;"
        f" get them with: {pip_install('demo')}\n"
    )


def test_the_demo_looks_for_everything_that_its_extra_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    def brought(extra: str) -> set[str]:
        required = [Requirement(text) for text in extras[extra]]
        own = {each.name for each in required if each.name != "loadwise"}
        return own.union(*(brought(part) for each in required for part in each.extras))

    assert set(demo.LIBRARIES) == brought("demo")
    modules = packages_distributions()
    assert all(name in modules[module] for name, module in demo.LIBRARIES.items())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_narrow_help_cuts_no_word(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    shown = set(invoke([command, "--help"]).stdout.split())
    for option in parser_of(command).options:
        assert set((option.help or "").replace("%%", "%").split()) <= shown


@pytest.mark.parametrize("command", COMMANDS)
def test_each_example_in_the_help_is_a_call_that_its_command_accepts(command: str) -> None:
    _, _, examples = module_of(command).EPILOG.rpartition("example")
    calls = re.findall(r"\bloadwise (.+)$", examples, re.MULTILINE)
    assert calls
    for name, *arguments in map(shlex.split, calls):
        parser_of(name).parse(arguments)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ("comprae", "loadwise: there is no command 'comprae' (did you mean 'compare'?)"),
        ("--versoin", "loadwise: there is no option --versoin (did you mean '--version'?)"),
        ("compare --scenaro flights", "loadwise compare: there is no option --scenaro (did you mean '--scenario'?)"),
        ("coordinator --topc a:1", "loadwise coordinator: there is no option --topc (did you mean '--topic'?)"),
        (
            "--completion bsh",
            "argument --completion: 'bsh' is none of bash, zsh, fish (did you mean 'bash'?)",
        ),
        ("watch --gruop=g", "loadwise watch: there is no option --gruop (did you mean '--group'?)"),
        ("coordinator --topic a:0", "loadwise coordinator: 0 partitions; a topic needs at least 1"),
        ("coordinator --config nmu.partitions=3", "no setting nmu.partitions (did you mean 'num.partitions'?)"),
        ("coordinator --config-file none.properties", "loadwise coordinator: there is no file none.properties"),
        ("compare --scenario fligths", "(did you mean 'flights'?)"),
        ("compare --assignor wieghted", "(did you mean 'weighted'?)"),
        ("demo --assignor strange", "'strange' is none of range, roundrobin"),
        ("compare --load lags", "(did you mean 'lag'?)"),
        ("watch --group g", "the following arguments are required: --bootstrap-servers"),
        ("compare --loads x.csv --members 0", "'0' is not a number of 1 or more"),
        ("watch --interval never", "'never' is not a number of 0.1 or more"),
        ("loads t --since yesterday", "'yesterday' is not a time"),
        ("compare --loads none.csv --members 2", "loadwise compare: there is no file none.csv"),
        ("balance --otu plan", "loadwise balance: there is no option --otu (did you mean '--out'?)"),
        ("balance none.json", "loadwise balance: there is no file none.json"),
        ("compare none.json", "loadwise compare: there is no file none.json"),
        ("replay none.jsonl", "loadwise replay: there is no file none.jsonl"),
        ("replay pyproject.toml", "loadwise replay: pyproject.toml is not a history of a group: line 1 is not JSON"),
        ("watch --bootstrap-servers x:1 --group g --command-config none", "loadwise watch: there is no file none"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(words: str, refusal: str) -> None:
    called = invoke(words.split())
    assert (called.exit_code, called.stdout) == (2, "")
    assert refusal in called.stderr
    assert len(called.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["balance", "compare --group g", "watch --group g"])
def test_a_broker_that_does_not_answer_is_status_1(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadwise.running_group.admin._TIMEOUT_MS", 100)
    called = invoke([*command.split(), "--bootstrap-servers", "127.0.0.1:1"])
    assert called.exit_code == 1
    assert "no Kafka answers at 127.0.0.1:1" in called.stderr


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("com", "compare"),
        ("--vers", "--version"),
        ("--completion b", "bash"),
        ("compare --sc", "--scenario"),
        ("compare --scenario fl", "flights"),
        ("compare --assignor cooperative-w", "cooperative-weighted"),
        ("compare --assignor=opt", "--assignor=optimal"),
        ("compare --assignor = opt", "optimal"),
        ("demo --assignor ra", "range"),
        ("coordinator --initial", "--initial-rebalance-delay-ms"),
        ("coordinator --log-format j", "json"),
        ("loads table --by rec", "records"),
        ("compare --html pag", ""),
    ],
)
def test_completion(words: str, found: str) -> None:
    assert invoke(["__complete", *words.split()]).stdout.split() == found.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "completed"), [("loadwise compare --scenario fl", "flights"), ("loadwise coordinator --vi", "--view")]
)
def test_bash_completes(line: str, completed: str) -> None:
    words = " ".join(line.split())
    asked = f"""
eval "$(loadwise --completion bash)"
COMP_WORDS=({words}); COMP_CWORD={len(line.split()) - 1}
_loadwise
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True, env={"PATH": path})
    assert done.stdout.split() == [completed], done.stderr


def test_a_reader_that_has_seen_enough_is_no_defect() -> None:
    command = f"{shlex.quote(sys.executable)} -m loadwise compare --scenario flights --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stderr == b""
