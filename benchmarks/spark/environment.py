"""The benchmark's environment: a PySpark of the connector's version, and Kafka and its jars from the tests' support."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "support"))  # which is no package: pytest finds it by its pythonpath

from kafka_process import kafka_from_jars, running_kafka  # noqa: E402 - only now it can be found
from session_of_its_own import session_of_its_own  # noqa: E402 - likewise
from spark_connector import VERSION, JarsMissingError, shortfall, spark_jars  # noqa: E402 - likewise
from topics import make_topic  # noqa: E402 - likewise

__all__ = [
    "VERSION",
    "JarsMissingError",
    "fitting_python",
    "kafka_from_jars",
    "make_topic",
    "running_kafka",
    "session_of_its_own",
    "shortfall",
    "spark_jars",
]


def fitting_python() -> str:
    """The Python whose PySpark is of the connector's version: this one, or that of a virtual environment beside .venv.

    That one is made the first time, with loadwise installed from this checkout.
    """
    if _installed() == VERSION:
        return sys.executable
    folder = ROOT / f".venv-pyspark-{VERSION}"
    python, done = folder / "bin" / "python", folder / ".done"
    if not done.exists():
        print(
            f"PySpark {VERSION}, which the connector is for, goes into {folder}: this takes minutes, once", flush=True
        )
        venv.create(folder, with_pip=True, clear=True)
        _run([str(python), "-m", "pip", "install", "--quiet", "--upgrade", "pip>=25.1"])
        _run([str(python), "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[spark]", f"pyspark=={VERSION}"])
        done.touch()
    return str(python)


def _installed() -> str | None:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return None


def _run(command: Sequence[str]) -> None:
    # Look for packages in that environment only.
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    subprocess.run(command, env=environment, check=True)
