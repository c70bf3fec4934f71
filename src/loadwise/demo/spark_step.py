"""The demo's last step: the same topic through Spark, where there is a JDK and PySpark, in a process of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil

from loadwise.assignor.measure import max_over_mean
from loadwise.demo.cluster import Cluster
from loadwise.demo.errors import CheckFailedError, StuckError
from loadwise.demo.process import child
from loadwise.installation import pip_install

_PATIENCE_S = 240.0


def missing() -> str | None:
    """What to install for this step, in one line; None if nothing is missing."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return "the Spark step needs a JDK, 17 or later: apt-get install openjdk-17-jre-headless (or set JAVA_HOME)"
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow")):
        return f"the Spark step needs PySpark: {pip_install('spark')}"
    return None


async def count(cluster: Cluster, tasks: int) -> list[int]:
    """Read the topic with Spark in tasks of a weighted plan; answer the records of each task that read any.

    Raises `ChildDiedError` when Spark fails and `StuckError` when it takes too long.
    """
    arguments = (
        "loadwise.demo.spark_count",
        f"--bootstrap-servers={cluster.bootstrap_servers}",
        f"--topic={cluster.topic}",
        f"--tasks={tasks}",
    )
    async with child("the Spark job", "loadwise.demo.lifeline", *arguments) as job:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                counts: list[int] | None = None
                async for line in job.lines():
                    if line.startswith("["):
                        counts = json.loads(line)
                await job.finished()
        except TimeoutError:
            raise StuckError(f"Spark did not count the topic within {_PATIENCE_S:.0f} s") from None
    if counts is None:
        raise CheckFailedError("the Spark job ended without a count")
    return counts


def describe(counts: list[int], tasks: int, published: int) -> str:
    """The check in one line. Raises `CheckFailedError` if Spark did not read what was published."""
    if sum(counts) != published:
        raise CheckFailedError(f"Spark counted {sum(counts):,} records, but {published:,} were published")
    shares = counts + [0] * (tasks - len(counts))
    return (
        f'Spark read the same {published:,} records through format("loadwise"), in {tasks} tasks of a weighted plan: '
        f"{', '.join(f'{share:,}' for share in shares)} (max/mean {max_over_mean(shares):.2f})"
    )
