"""The kafka-python that a member without records needs; importing this fails if it is missing or too old."""

from __future__ import annotations

from loadwise.assignor.clients.versions import TriedVersions, require

_OLDEST = (3, 0, 12)

TRIED = TriedVersions(
    "kafka-python",
    require("kafka-python", "kafka", oldest=_OLDEST, extra="confluent-kafka"),
    oldest=_OLDEST,
    newest=(3, 0, 12),
)
"""The versions whose private parts `loadwise.assignor.clients.membership.member` was tested with."""
