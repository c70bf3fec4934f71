"""Spark's own Kafka source is fetched once; what is missing is said. Maven is played by a script here."""

from __future__ import annotations

from pathlib import Path

import pytest
from spark_connector import JarsMissingError, connector_jars, shortfall, spark_jars

RELEASED = ("spark-sql-kafka-0-10_2.13-4.2.0", "kafka-clients-3.9.2", "commons-pool2-2.13.1")
PROVIDER = "spark-token-provider-kafka-0-10_2.13-"
MAVEN = """#!/bin/sh
echo "$@" >> "{calls}"
for argument; do
  case $argument in -DoutputDirectory=*) out=${{argument#*=}};; esac
done
mkdir -p "$out"
for jar in {jars}; do touch "$out/$jar.jar"; done
{end}
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a Maven that fetches these jars, and answers the file that it writes its calls to."""

    def make(*jars: str, end: str = "") -> Path:
        for name in ("mvn", "javac"):
            file = tmp_path / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(MAVEN.format(calls=tmp_path / "calls", jars=" ".join(jars), end=end))
            file.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return tmp_path / "calls"

    return make


def test_they_are_fetched_once_for_each_version_and_only_those_that_pyspark_lacks(maven) -> None:
    calls = maven(*RELEASED, f"{PROVIDER}4.2.0", "scala-library-2.13.15")
    wanted = sorted(f"{name}.jar" for name in [*RELEASED, f"{PROVIDER}4.2.0"])
    assert [jar.name for jar in connector_jars("4.2.0")] == wanted
    assert [Path(jar).name for jar in spark_jars("4.2.0").split(",")] == wanted
    assert shortfall("4.2.0") is None
    assert len(calls.read_text().splitlines()) == 1
    assert "-Dspark.version=4.2.0" in calls.read_text()
    connector_jars("4.3.0")
    assert len(calls.read_text().splitlines()) == 2


def test_a_repository_that_lacks_one_jar_of_this_version_is_said_in_one_line(maven) -> None:
    maven(*RELEASED, f"{PROVIDER}4.1.0-preview1")
    said = shortfall("4.2.0")
    assert said is not None
    assert f"{PROVIDER}4.1.0-preview1.jar" in said
    assert "\n" not in said


def test_what_maven_says_is_told_and_nothing_is_kept(maven, tmp_path: Path) -> None:
    maven(end="echo no such artifact; exit 1")
    with pytest.raises(JarsMissingError, match="no such artifact"):
        connector_jars()
    assert not any(each.is_dir() for each in (tmp_path / "cache" / "loadwise").iterdir())


def test_without_maven_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JarsMissingError, match="apt-get install openjdk-17-jdk-headless maven"):
        connector_jars()
