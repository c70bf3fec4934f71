"""Streaming queries of Spark, which start again where Spark's Python process was late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topics import WAIT_S, until

NOT_CONNECTED = "failed to connect back"
"""What Spark says of a Python process that took longer than 10 s to start. No option changes the 10 s."""


def run_to_its_end(start: Callable[[], Any]) -> Any:
    """Start a query, wait for its end and return it; start it again where its Python process was late.

    Nothing was planned then, so the query goes on from its checkpoint as if it had not been started.
    """
    from pyspark.errors import StreamingQueryException

    while True:
        query = start()
        try:
            assert query.awaitTermination(WAIT_S)
        except StreamingQueryException as error:
            if NOT_CONNECTED not in str(error):
                raise
        else:
            return query
        finally:
            query.stop()


class RunningQuery:
    """A query that runs on until its with block ends, or it fails."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self.started = start()

    def __enter__(self) -> RunningQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.started.stop()

    def error(self) -> Exception | None:
        """What it has failed with."""
        error: Exception | None = self.started.exception()
        if error is None or NOT_CONNECTED not in str(error):
            return error
        self.started = self._start()
        return None

    def wait_for(self, condition: Callable[[], Any]) -> None:
        """Wait until it holds; a query that fails meanwhile fails the test with its own error."""

        def reached() -> bool:
            if condition():
                return True
            assert (error := self.error()) is None, error
            return False

        until(reached, lambda: self.started.status)

    def fails(self) -> str:
        """Wait until it fails, and answer why."""
        until(lambda: self.error() is not None, lambda: self.started.status)
        return str(self.error())
