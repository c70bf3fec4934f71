"""What a test does on a machine that lacks what it needs of the real tier."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from kafka_process import KafkaNotInstalledError
from maven import JarsMissingError


@contextmanager
def skipped_where_missing() -> Iterator[None]:
    """Skip the test where there is no Apache Kafka, or no jars, and tell why.

    With LOADWISE_REQUIRE_KAFKA it fails: a machine that is to run the real tier must not pass it by leaving it out.
    """
    try:
        yield
    except (KafkaNotInstalledError, JarsMissingError) as error:
        if os.environ.get("LOADWISE_REQUIRE_KAFKA"):
            raise
        pytest.skip(str(error))


def unavailable(what: str) -> NoReturn:
    """The same for what a test has found to be missing by itself."""
    if os.environ.get("LOADWISE_REQUIRE_KAFKA"):
        raise RuntimeError(what)
    pytest.skip(what)
