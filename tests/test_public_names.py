"""The names that users import from ``loadwise``, and the names of public classes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest

import loadwise
import loadwise.coordinator
from loadwise.installation import pip_install

ROOT = Path(loadwise.__file__).parent


@pytest.mark.parametrize("name", loadwise.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(loadwise, name) is not None


@pytest.mark.parametrize("package", [loadwise, loadwise.coordinator])
def test_the_stub_of_a_package_lists_its_names_once(package: ModuleType) -> None:
    stub = ast.parse(Path(package.__file__ or "").with_suffix(".pyi").read_text())
    listed = [(alias.name, alias.asname) for each in stub.body for alias in each.names]  # type: ignore[attr-defined]
    assert [name for name, _ in listed] == [exported for _, exported in listed]
    assert sorted(name for name, _ in listed) == sorted(package.__all__)


def test_importing_all_names_leaves_out_those_without_their_extra() -> None:
    code = "import sys; sys.modules['aiokafka'] = None\nfrom loadwise import *\nprint(*sorted(globals()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    missing = set(loadwise.__all__) - set(done.stdout.split())
    assert missing == {"AiokafkaConsumer", "AiokafkaProducer", "aiokafka_consumer", "aiokafka_producer"}


def test_a_misspelt_name_gets_one_suggestion() -> None:
    code = "import loadwise; loadwise.kafka_python_consmer"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.lower().count("did you mean") == 1


def test_importing_loadwise_loads_none_of_its_parts() -> None:
    code = "import sys, loadwise; print(*(name for name in sys.modules if name.startswith(('loadwise.', 'numpy'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["loadwise.public_names", "loadwise.version"]


@pytest.mark.parametrize(
    ("name", "library", "extra"),
    [
        ("kafka_python_consumer", "kafka", "kafka-python"),
        ("aiokafka_consumer", "aiokafka", "aiokafka"),
        ("confluent_consumer", "confluent_kafka", "confluent-kafka"),
        ("confluent_aio_consumer", "kafka", "confluent-kafka"),
        ("kafka_python_producer", "kafka", "kafka-python"),
        ("aiokafka_producer", "aiokafka", "aiokafka"),
        ("confluent_producer", "confluent_kafka", "confluent-kafka"),
        ("GroupCollector", "prometheus_client", "prometheus"),
        ("Coordinator", "crc32c", "coordinator"),
        ("KafkaContainer", "crc32c", "coordinator"),
    ],
)
def test_without_its_extra_a_name_says_which(name: str, library: str, extra: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None\nfrom loadwise import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(pip_install(extra))


def test_a_name_that_users_import_is_the_name_of_one_class() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in _files(ROOT):
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            places[name].append(str(path.relative_to(ROOT)))
    exported = {*loadwise.__all__, *loadwise.coordinator.__all__}
    assert {name: found for name, found in places.items() if name in exported and len(found) > 1} == {}


def _files(folder: Path) -> list[Path]:
    """All modules; ``rglob`` follows no links before Python 3.13."""
    return [
        file
        for path in folder.iterdir()
        for file in (_files(path) if path.is_dir() else [path] if path.suffix == ".py" else [])
    ]
