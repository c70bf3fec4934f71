"""A Python with a PySpark of the connector's version."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from spark_connector import VERSION

from benchmarks import ROOT


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
