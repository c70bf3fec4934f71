"""The jar of the assignor `loadwise` for Apache Kafka's brokers, built by Maven once for each state of its source."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from made_once import made_once
from maven import JarsMissingError

SOURCE = Path(__file__).resolve().parents[2] / "assignor" / "broker"
NAME = "io.loadwise.broker.LoadwiseAssignor"
JAR, TESTS = "loadwise-assignor.jar", "test-classes"


def broker_assignor() -> Path:
    """The folder with the jar, `JAR`, and the classes of its tests, `TESTS`. Raises `JarsMissingError`."""
    maven = shutil.which("mvn")
    if maven is None or shutil.which("javac") is None:
        raise JarsMissingError("a JDK 17 and Maven are needed: apt-get install openjdk-17-jdk-headless maven")

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as project:
            shutil.copytree(SOURCE, project, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target"))
            command = [maven, "-q", "-B", "package"]
            done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise JarsMissingError(f"Maven could not build the broker's assignor:\n{done.stdout}{done.stderr}")
            (jar,) = Path(project, "target").glob("*.jar")
            shutil.copy(jar, folder / JAR)
            shutil.copytree(Path(project, "target", "test-classes"), folder / TESTS)

    files = sorted(each for each in SOURCE.rglob("*") if each.is_file() and "target" not in each.parts)
    return made_once("broker-assignor", b"".join(each.read_bytes() for each in files), build)
