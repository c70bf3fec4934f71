"""Spark's own Kafka source (``format("kafka")``, spark-sql-kafka-0-10), to be compared with: its jars.

`VERSION` is the newest that Maven Central had when this was written; it runs in that PySpark and in the next minor
version, 4.3. A session gets it by ``.config("spark.jars", spark_jars())``.
"""

from __future__ import annotations

from pathlib import Path

from maven import JarsMissingError, jars

__all__ = ["VERSION", "JarsMissingError", "connector_jars", "shortfall", "spark_jars"]

VERSION = "4.2.0"
POM = Path(__file__).with_name("spark-connector.pom.xml")
PROVIDER = "spark-token-provider-kafka-0-10_2.13-"
NEEDED = ("spark-sql-kafka-0-10_2.13-", PROVIDER, "kafka-clients-", "commons-pool2-")
"""The rest of what Maven fetches (compression, logging, Scala itself) is among PySpark's own jars, mostly newer."""


def connector_jars(version: str = VERSION) -> list[Path]:
    """The jars of one version, fetched by Maven the first time. Raises `JarsMissingError`."""
    fetched = jars(POM, f"spark-connector-{version}", f"-Dspark.version={version}")
    return sorted(jar for jar in fetched.glob("*.jar") if jar.name.startswith(NEEDED))


def spark_jars(version: str = VERSION) -> str:
    """The same as Spark's setting ``spark.jars`` has them. Raises `JarsMissingError`."""
    return ",".join(map(str, connector_jars(version)))


def shortfall(version: str = VERSION) -> str | None:
    """None if all jars are of one version, else a line that says which is older. Raises `JarsMissingError`."""
    [provider] = (jar for jar in connector_jars(version) if jar.name.startswith(PROVIDER))
    found = provider.stem.removeprefix(PROVIDER)
    if found == version:
        return None
    return f"the connector {version} runs with {PROVIDER}{found}.jar: the repository does not have {version} of it"
