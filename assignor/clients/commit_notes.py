"""Commit metadata in which a member sends its leader its own measured speed.

A leader reads the group's committed offsets anyway, and their metadata with them. So it gets a member's speed within
one reading instead of at the next join. The user's own metadata is not changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadwise.protocol.live_notes import is_note


def with_note(offsets: Mapping[Any, Any], note: str) -> dict[Any, Any]:
    """Add a note to the first offset of a commit that has no metadata; for kafka-python and aiokafka.

    Existing notes are removed, because a consumer may commit a note again that it read with its committed offsets.
    ``note`` is "" to write no note.
    """
    noted = {}
    for partition, at in offsets.items():
        metadata = "" if is_note(at.metadata) else at.metadata
        if note and not metadata:
            metadata, note = note, ""
        noted[partition] = at if metadata == at.metadata else at._replace(metadata=metadata)
    return noted
