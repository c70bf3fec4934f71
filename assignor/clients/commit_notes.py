"""What a member tells its leader with its commits: how fast it has measured itself to be.

A leader reads the group's committed offsets anyway, and with them their metadata. So a member that writes its speed
beside one of its offsets is known within a reading, where otherwise it would be known at the next join. Metadata that
is not ours stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadwise.protocol.live_notes import is_note


def with_note(offsets: Mapping[Any, Any], note: str) -> dict[Any, Any]:
    """The offsets of a commit, kafka-python's or aiokafka's, with a note beside the first that has no metadata.

    Notes that are there already are taken off: a consumer that has read them with the committed offsets of its
    partitions commits them again. ``note`` is "" where there is none to write.
    """
    noted = {}
    for partition, at in offsets.items():
        metadata = "" if is_note(at.metadata) else at.metadata
        if note and not metadata:
            metadata, note = note, ""
        noted[partition] = at if metadata == at.metadata else at._replace(metadata=metadata)
    return noted
