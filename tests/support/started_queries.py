"""Streaming queries that read what there is and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from topics import WAIT_S

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
