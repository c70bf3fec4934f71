"""Kafka's own assignors: their jars from Maven Central, and how to start the program that runs them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
REMEDY = "apt-get install openjdk-17-jdk-headless maven"


class JavaMissingError(Exception):
    """Java's assignors cannot be run: the message names what to install."""


def command() -> list[str]:
    """How to start `JavaAssignors.java`. Fetches the jars the first time. Raises `JavaMissingError`."""
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        raise JavaMissingError(f"Java's assignors are left out: they need a JDK 17 or later ({REMEDY})")
    return [java, "-Xmx4g", "-cp", f"{_jars()}/*", str(HERE / "JavaAssignors.java")]


def _jars() -> Path:
    maven = shutil.which("mvn")
    if maven is None:
        raise JavaMissingError(f"Java's assignors are left out: their jars are fetched with Maven ({REMEDY})")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    folder = cache / "loadwise" / f"benchmark-{hashlib.sha256(POM.read_bytes()).hexdigest()[:8]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as fetched:
            shutil.copy(POM, fetched)
            goal = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}/libs"]
            done = subprocess.run([maven, "-q", "-B", *goal], cwd=fetched, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise JavaMissingError(f"Java's assignors are left out: Maven could not fetch them:\n{done.stdout}")
            Path(fetched, "libs").rename(folder)
    return folder
