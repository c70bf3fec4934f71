"""A Spark session whose JVM ends with it, so that the next one starts with settings of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from loadwise.spark_source.session import local_session

END_S = 60


@contextmanager
def session_of_its_own(name: str, *, master: str, settings: Mapping[str, str]) -> Iterator[Any]:
    """As `local_session`."""
    try:
        with local_session(name, master=master, settings=settings) as session:
            yield session
    finally:
        _end_the_jvm()


def _end_the_jvm():
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is not None:  # stop() leaves it, and it waits for its standard input to close
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(END_S)
        SparkContext._gateway = SparkContext._jvm = None
