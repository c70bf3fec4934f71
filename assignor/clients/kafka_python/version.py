"""The installed kafka-python; importing this fails if it is missing or too old."""

from __future__ import annotations

from loadwise.assignor.clients.versions import TriedVersions, require

_OLDEST = (3, 0, 0)

TRIED = TriedVersions(
    "kafka-python", require("kafka-python", "kafka", oldest=_OLDEST), oldest=_OLDEST, newest=(3, 0, 12)
)
"""The versions whose private classes `loadwise.assignor.clients.kafka_python.internals` was tested with."""
