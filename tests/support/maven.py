"""Java's jars for tests and benchmarks: fetched by Maven, once, and kept in the user's cache folder."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from made_once import made_once


class JarsMissingError(Exception):
    """Jars are not there and cannot be had: the message says what to install, or what Maven said."""


def jars(pom: Path, name: str, *arguments: str) -> Path:
    """The folder with all jars that a pom asks for, fetched once for each content of it and each set of arguments.

    ``name`` begins the folder's name; ``arguments`` are Maven's, such as ``-Dspark.version=4.2.0``. Raises
    `JarsMissingError`.
    """
    maven = shutil.which("mvn")
    if maven is None or shutil.which("javac") is None:
        raise JarsMissingError("a JDK 17 and Maven are needed: apt-get install openjdk-17-jdk-headless maven")

    def fetch(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as project:
            shutil.copy(pom, Path(project, "pom.xml"))
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", *arguments]
            done = subprocess.run([maven, "-q", "-B", *goal], cwd=project, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise JarsMissingError(f"Maven could not fetch what {pom.name} asks for:\n{done.stdout}{done.stderr}")

    return made_once(name, pom.read_bytes() + "".join(arguments).encode(), fetch)
