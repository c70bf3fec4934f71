"""The installed aiokafka; importing this fails if it is missing or too old."""

from __future__ import annotations

from loadwise.assignor.clients.versions import TriedVersions, require

_OLDEST = (0, 13, 0)

TRIED = TriedVersions("aiokafka", require("aiokafka", "aiokafka", oldest=_OLDEST), oldest=_OLDEST, newest=(0, 14, 0))
"""The versions whose private classes `loadwise.assignor.clients.aiokafka.internals` was tested with."""
