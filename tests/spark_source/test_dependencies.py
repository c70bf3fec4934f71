"""Without one of its libraries the source names the extra that brings it, and Spark still finds other sources."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from topics import WAIT_S

from loadwise.installation import pip_install
from loadwise.spark_source.session import python_for_spark

ERROR = "loadwise.spark_source.errors.MissingDependencyError: "


def last_line(missing: str, program: str) -> str:
    """The last line of what Python says about a program where a library is not installed."""
    program = f"import sys; sys.modules[{missing!r}] = None\n{program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=WAIT_S)
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


NEEDED = f"{ERROR}loadwise.spark_source needs PySpark 4.0 or later"


def test_without_pyspark():
    line = last_line("pyspark", "import pyspark_loadwise")
    assert line == f"{NEEDED}, which is not installed; get it with: {pip_install('spark')}"


def test_a_pyspark_without_python_data_sources_is_named_with_its_version():
    """As 3.5.3 is: there is no such module in it."""
    pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")
    program = "import pyspark; pyspark.__version__ = '3.5.3'\nimport pyspark_loadwise"
    line = last_line("pyspark.sql.datasource", program)
    assert line == f"{NEEDED}, and 3.5.3 is installed; get it with: {pip_install('spark')}"


@pytest.mark.parametrize(("module", "library"), [("confluent_kafka", "confluent-kafka"), ("aiokafka", "aiokafka")])
def test_without_what_reading_takes(module, library):
    """The import succeeds, for Spark looks up all sources at once: a failing one would take the others with it."""
    pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")
    load = "import pyspark_loadwise as found\nfound.DefaultSource({'subscribe': 't'}).schema()"
    line = last_line(module, load)
    assert (
        line
        == f"{ERROR}format('loadwise') needs {library}, which is not installed; get it with: {pip_install('spark')}"
    )


def test_the_client_without_confluent_kafka():
    line = last_line("confluent_kafka", "import loadwise.spark_source.cluster.client")
    assert line.startswith(f"{ERROR}reading Kafka from Spark needs confluent-kafka")
    assert line.endswith(pip_install("spark"))


@pytest.mark.parametrize("module", ["aiokafka", "crc32c"])
def test_an_executor_without_what_the_planner_has(module):
    pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")
    line = last_line(
        module,
        "from loadwise.spark_source.options.query import parse\n"
        "from loadwise.spark_source.task import OffsetRange, Task\n"
        "from loadwise.spark_source.reading.arrow_batches import full_schema\n"
        "from loadwise.spark_source.reading.tasks import read_task\n"
        "options = parse({'kafka.bootstrap.servers': 'x:1', 'subscribe': 't'})\n"
        "read_task(Task('slot-0', (OffsetRange('t', 0, 0, 1),), 1.0), options, full_schema(include_headers=False))",
    )
    assert line == (
        f"{ERROR}reading Kafka from Spark needs {module}, which is not installed where this task runs; get it"
        f" there with: {pip_install('spark')}; or set reader=messages"
    )


def test_spark_finds_a_python_whose_path_has_a_space():
    assert python_for_spark("/venv/bin/python", "/bin") == {"PYSPARK_PYTHON": "/venv/bin/python"}
    folder = "/my project/bin"
    expected = {"PATH": os.pathsep.join([folder, "/bin"]), "PYSPARK_PYTHON": "python"}
    assert python_for_spark(f"{folder}/python", "/bin") == expected
